/** Definitions to register. */
import { readdirSync, readFileSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The harvested listings where they are at hand, else the few that are committed. */
const CORPORA = ["../../../shared/corpus/mcp-servers", "../../test/fixtures/corpus"];

/** `{ serverId, definitions }` of real MCP servers, in order of their names. */
export function corpus() {
  const folder = CORPORA.map((path) => fileURLToPath(new URL(path, import.meta.url))).find((path) => existsSync(path));
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return files.sort().map((name) => {
    const { tools } = JSON.parse(readFileSync(`${folder}/${name}`, "utf8"));
    return { serverId: name.slice(0, -".json".length), definitions: tools.map((tool) => Buffer.from(JSON.stringify(tool))) };
  });
}

/** A definition of exactly `bytes` bytes, with a label of one sentence. */
export function definitionOf(name, bytes) {
  const sized = (filler) =>
    JSON.stringify({
      name,
      description: `Looks up one record of the ${name} register by its key. Answers all of its fields.`,
      inputSchema: { type: "object", properties: { key: { type: "string", description: filler } }, required: ["key"] },
    });
  return Buffer.from(sized("x".repeat(Math.max(0, bytes - sized("").length))));
}
