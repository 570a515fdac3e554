/** The files of a registry's settings, opened together: what is wrong with any of them is told with all the rest. */
import type { Config } from "./config/setting.js";
import type { World } from "./core.js";
import type { EgressPolicy } from "./domain/admission/egress.js";
import { type GateRules, NO_GATE_RULES, watchGateRules } from "./gate-rules.js";
import { type EmbedderFiles, openEmbedder } from "./meaning-assembly.js";
import { Attempts, sentencesOf } from "./files/problems.js";
import type { Authenticator } from "./rpc/identity/authenticator.js";
import { openIdentity } from "./rpc/identity/open.js";
import { openTls, type Tls } from "./rpc/tls.js";
import { type Credentials, NO_CREDENTIALS, watchCredentials } from "./upstream/credentials/credentials.js";

export interface OpenedFiles {
  readonly credentials: Credentials;
  readonly identity: Authenticator;
  readonly tls: Tls | undefined;
  readonly rules: GateRules;
  /** Undefined where no embedder is set. */
  readonly embedder: EmbedderFiles | undefined;
  close(): void;
}

/** Throws Problems, with nothing left open. */
export function openFiles(config: Config, world: World, policy: EgressPolicy): OpenedFiles {
  const { env = {}, log, clock, resolve } = world;
  const { tokensFile, jwtJwks, certificatesFile, upstreamCredentials, tlsCert: cert, tlsKey: key, tlsClientCa: clientCa } = config;
  const jwt = { issuer: config.jwtIssuer, audience: config.jwtAudience, algorithms: config.jwtAlgorithms };
  const options = { tokensFile, jwtJwks, jwt, certificatesFile, way: { policy, resolve } };
  const attempts = new Attempts();
  const credentials = attempts.try(() =>
    upstreamCredentials === "" ? NO_CREDENTIALS : watchCredentials(upstreamCredentials, env, log),
  );
  const identity = attempts.try(() => openIdentity(options, log, () => clock.now()));
  const tls = attempts.try(() => (cert === "" || key === "" ? undefined : openTls({ cert, key, clientCa }, log)));
  const embedder = attempts.try(() => openEmbedder(config, policy, log, resolve));
  const rules = attempts.try(() => (config.gateRules === "" ? NO_GATE_RULES : watchGateRules(config.gateRules, log)));
  const close = (): void => {
    rules?.close();
    embedder?.close();
    credentials?.close();
    identity?.close();
    tls?.close();
  };
  if (credentials && identity && rules && !attempts.failed) return { credentials, identity, tls, rules, embedder, close };
  close();
  throw attempts.problems();
}

/** What is wrong with the files of settings that are not all good, one sentence each. */
export function fileProblems(config: Config, world: World): readonly string[] {
  const policy: EgressPolicy = { inside: "closed", allow: config.egressAllow, own: () => [], machine: () => [] };
  try {
    openFiles(config, world, policy).close();
    return [];
  } catch (error) {
    return sentencesOf(error);
  }
}
