/** Who may import whom, as src/ARCHITECTURE.md says. A room that is not named here may import nothing but itself. */
const ARROWS = {
  domain: [],
  config: ["domain"],
  catalogue: ["domain"],
  gate: ["domain"],
  schemas: ["catalogue", "domain"],
  probe: ["catalogue", "domain"],
  store: ["catalogue", "schemas", "probe", "domain", "gen"],
  files: ["catalogue"],
  upstream: ["catalogue", "gate", "schemas", "probe", "domain", "files"],
  rpc: ["files", "catalogue", "gate", "schemas", "probe", "store", "upstream", "domain", "gen"],
  ops: ["catalogue", "gate", "schemas", "probe", "store", "upstream", "domain", "gen"],
  client: ["domain", "gen"],
  gateway: ["client", "domain", "upstream"],
  cli: ["client", "domain", "gate", "upstream", "config", "gen"],
  gen: [],
};

const arrows = Object.entries(ARROWS).map(([room, targets]) => ({
  name: `${room}-arrows`,
  severity: "error",
  comment: targets.length > 0 ? `${room} may import only ${targets.join(", ")}` : `${room} may import no other room`,
  from: { path: `^src/${room}/` },
  to: { path: "^src/", pathNot: `^src/(${[room, ...targets].join("|")})/` },
}));

module.exports = {
  forbidden: [
    ...arrows,
    {
      name: "domain-is-pure",
      severity: "error",
      comment: "the domain does no I/O and knows no protobuf: node:crypto and parsers of JSON and IP addresses are all it needs",
      from: { path: "^src/domain/" },
      to: { dependencyTypesNot: ["local"], pathNot: "^(node:)?(crypto|util)$|node_modules/(jsonc-parser|ipaddr\\.js)/" },
    },
    {
      name: "no-cycles",
      severity: "error",
      comment: "modules that import each other cannot be read one at a time",
      from: { path: "^src/" },
      to: { circular: true },
    },
    {
      name: "resolvable",
      severity: "error",
      comment: "an import leads nowhere",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-dev-packages",
      severity: "error",
      comment: "what runs in production is installed in production",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"] },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
