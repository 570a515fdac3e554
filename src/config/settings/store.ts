/** Where the catalogue is kept. */
import { LIMITS } from "../../domain/limits.js";
import { PATH, type Setting, type TextRule } from "../setting.js";

const FOLDER: TextRule = { ...PATH, placeholder: "folder" };
const PREFIX: TextRule = {
  pattern: /^[A-Za-z0-9._:-]{1,64}$/,
  expected: "1 to 64 characters of A-Z a-z 0-9 . _ : -",
  placeholder: "prefix",
};

export const STORE: readonly Setting[] = [
  {
    name: "store",
    flag: "--store",
    variable: "TOOLCRIB_STORE",
    fallback: "embedded",
    kind: { kind: "store" },
    help:
      "Where the log is kept: embedded, memory, or redis://[user:password@]host[:port][/db]; " +
      "redis+sentinel://[user:password@]host[:port],…/primary[/db] follows failovers; redis+cluster://[user:password@]host[:port],… " +
      "is a Redis Cluster; rediss… is the same with TLS.",
  },
  {
    name: "dataDir",
    flag: "--data-dir",
    variable: "TOOLCRIB_DATA_DIR",
    fallback: "./data",
    kind: { kind: "text", rule: FOLDER },
    help: "Folder of the embedded store.",
  },
  {
    name: "redisPrefix",
    flag: "--redis-prefix",
    variable: "TOOLCRIB_REDIS_PREFIX",
    fallback: "toolcrib:",
    kind: { kind: "text", rule: PREFIX },
    help: "What every Redis key begins with; replicas of one registry share it.",
  },
  {
    name: "redisPasswordFile",
    flag: "--redis-password-file",
    variable: "TOOLCRIB_REDIS_PASSWORD_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "File of the password for Redis, instead of one in --store; read at the start.",
  },
  {
    name: "redisSentinelPasswordFile",
    flag: "--redis-sentinel-password-file",
    variable: "TOOLCRIB_REDIS_SENTINEL_PASSWORD_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "File of the password for the Sentinels, where they want one; read at the start.",
  },
  {
    name: "redisCa",
    flag: "--redis-ca",
    variable: "TOOLCRIB_REDIS_CA",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the authorities that Redis's certificate is judged by, instead of the system's; read for every connection.",
  },
  {
    name: "redisCert",
    flag: "--redis-cert",
    variable: "TOOLCRIB_REDIS_CERT",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the certificate that is shown to Redis, where it wants one; read for every connection.",
  },
  {
    name: "redisKey",
    flag: "--redis-key",
    variable: "TOOLCRIB_REDIS_KEY",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of that certificate's private key.",
  },
  {
    name: "partitions",
    flag: "--partitions",
    variable: "TOOLCRIB_PARTITIONS",
    fallback: "0",
    kind: { kind: "integer", min: 0, max: LIMITS.partitions },
    help:
      "Logs that namespaces are spread over, fixed when a store is created: more than one lets a Redis Cluster share the work. 0 takes " +
      "the number that the store has, and 1 for a new one.",
  },
];
