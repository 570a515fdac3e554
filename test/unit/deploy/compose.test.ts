import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { CLIENT_VARIABLES, SETTINGS } from "../../../src/config/settings.js";

const ROOT = new URL("../../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");

interface Service {
  readonly image: string;
  readonly build?: { readonly dockerfile: string; readonly target: string };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly healthcheck?: { readonly disable?: boolean };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

const compose = parse(read("docker-compose.yml"), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: object;
  readonly networks: { readonly tools: { readonly ipam: { readonly config: readonly { readonly subnet: string }[] } } };
};
const services = Object.entries(compose.services);
/** Image → the stage that makes it; one service builds it for all. */
const built = new Map(services.flatMap(([, { image, build }]) => (build ? [[image, build] as const] : [])));
const dockerfile = read("deploy/Dockerfile");

describe("docker-compose.yml", () => {
  it("runs every service without capabilities, on a read-only root", () => {
    for (const [name, service] of services) {
      expect(service.read_only, name).toBe(true);
      expect(service.cap_drop, name).toEqual(["ALL"]);
      expect(service.security_opt, name).toEqual(["no-new-privileges:true"]);
    }
  });

  it("pins what it pulls, and builds the rest from stages that exist", () => {
    for (const [name, { image }] of services) {
      if (!built.has(image)) expect(image, name).toMatch(/:v?\d+\.\d+\.\d+(-[a-z]+)?$/);
    }
    for (const { dockerfile: path, target } of built.values()) {
      expect(path).toBe("deploy/Dockerfile");
      expect(dockerfile).toMatch(new RegExp(`^FROM \\S+ AS ${target}$`, "m"));
    }
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:20\.\d+\.\d+-bookworm-slim$/m);
  });

  it("publishes on loopback alone, no port twice", () => {
    const published = services.flatMap(([, service]) => service.ports ?? []);
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    const onHost = published.map((port) => port.split(":")[1]);
    expect(new Set(onHost).size).toBe(onHost.length);
    expect(onHost).toEqual(expect.arrayContaining(["7850", "7860", "7852", "7862", "7853", "9090", "3000"]));
  });

  it("waits for health, and for the tokens, never for a mere start", () => {
    for (const [name, { depends_on: waits = {} }] of services)
      for (const [other, { condition }] of Object.entries(waits)) {
        expect(compose.services, name).toHaveProperty(other);
        expect(condition, `${name} → ${other}`).toBe(
          other === "init" ? "service_completed_successfully" : "service_healthy",
        );
        const healthy =
          compose.services[other]?.healthcheck !== undefined ||
          built.get(compose.services[other]?.image ?? "")?.target === "registry";
        expect(healthy, `${other} has a health check`).toBe(true);
      }
  });

  it("mounts files that are there and volumes that are declared", () => {
    for (const [name, { volumes = [] }] of services)
      for (const volume of volumes) {
        const [source = ""] = volume.split(":");
        if (source.startsWith("./")) {
          expect(existsSync(new URL(source, ROOT)), `${name}: ${source}`).toBe(true);
          expect(volume, name).toMatch(/:ro$/);
        } else expect(compose.volumes).toHaveProperty(source);
      }
  });

  it("gives settings that the registry and its clients know, and one network to egress and Docker", () => {
    const known = [...SETTINGS.map((s) => s.variable), ...CLIENT_VARIABLES];
    for (const [, { environment = {} }] of services)
      for (const variable of Object.keys(environment))
        if (variable.startsWith("TOOLCRIB_")) expect(known).toContain(variable);
    for (const variable of [...dockerfile.matchAll(/\b(TOOLCRIB_\w+)=/g)].map((m) => m[1]))
      expect(known).toContain(variable);
    const subnet = compose.networks.tools.ipam.config[0]?.subnet;
    for (const replica of ["registry-a", "registry-b", "gateway"])
      expect(compose.services[replica]?.environment?.["TOOLCRIB_EGRESS_ALLOW"]).toBe(subnet);
  });

  it("keeps MCP servers away from Redis, and Redis from losing what it was told", () => {
    for (const name of ["clock", "sample"]) expect(compose.services[name]?.networks).toEqual(["tools"]);
    expect(compose.services["redis"]?.networks).toEqual(["store"]);
    expect(compose.services["redis"]?.ports).toBeUndefined();
    expect(compose.services["redis"]?.command?.join(" ")).toMatch(/--appendonly yes .*--maxmemory-policy noeviction/);
  });

  it("has Prometheus look at both replicas and the gateway", () => {
    const config = parse(read("deploy/prometheus/prometheus.yml")) as {
      scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[];
    };
    expect(config.scrape_configs[1]).toMatchObject({ job_name: "toolcrib-gateway", static_configs: [{ targets: ["gateway:7854"] }] });
    expect(config.scrape_configs[0]).toMatchObject({
      job_name: "toolcrib",
      static_configs: [{ targets: ["registry-a:7852", "registry-b:7852"] }],
    });
  });
});
