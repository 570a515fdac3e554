import type { RegistryConnection } from "../../client/connection.js";
import { RegistryError, registryError } from "../../client/registry-error.js";
import { HealthCheckResponse_ServingStatus as Serving } from "../../gen/grpc/health/v1/health_pb.js";
import type { Reach, Speaks } from "./dial.js";
import { placeOf, reach, speaks } from "./dial.js";
import type { Finding } from "./finding.js";
import { fail, ok } from "./finding.js";

const DIAL_MS = 3_000;
const CALL_MS = 5_000;
const CHECK = "connection";
/** The check of a registry that is there and has nothing to serve from; its ops listener says why. */
export const NOT_SERVING = "serving";
const NAME_IT = "name the registry with --registry or TOOLCRIB_URL";

/** Whether the registry can be reached at all; the findings end with a fail where it cannot. */
export async function checkConnection(registry: RegistryConnection): Promise<Finding[]> {
  const { address } = registry.target;
  const reached = await reach(placeOf(address), DIAL_MS);
  if (reached !== "open") return [notReached(address, reached)];
  try {
    const { status } = await registry.health({ timeoutMs: CALL_MS });
    const state = Serving[status] ?? String(status);
    if (status === Serving.SERVING) return [ok(CHECK, `the registry at ${address} answers and is serving`)];
    return [
      fail(
        NOT_SERVING,
        `the registry at ${address} answers, but is ${state}: it is starting, stopping or without a catalogue`,
        "look at /readyz on its ops address and at its log",
      ),
    ];
  } catch (error) {
    const failed = registryError(error);
    return [explainCall(address, failed) ?? (await explainSilence(address, failed))];
  }
}

function notReached(address: string, reached: Exclude<Reach, "open">): Finding {
  switch (reached) {
    case "refused":
      return fail(
        CHECK,
        `${address} refuses connections: nothing listens there`,
        `start a registry with \`npx toolcrib\`, or ${NAME_IT}`,
      );
    case "timeout":
      return fail(
        CHECK,
        `${address} does not answer connections within ${DIAL_MS / 1000} s`,
        `ask whether a firewall or a network policy is between here and there, or ${NAME_IT}`,
      );
    case "unknown-host":
      return fail(
        CHECK,
        `the host of ${address} has no address`,
        `check the spelling and the name servers, or ${NAME_IT}`,
      );
    case "unreachable":
      return fail(CHECK, `there is no way to ${address} from here`, `check the network, or ${NAME_IT}`);
  }
}

/** A failure that the other side put into words; undefined where the connection itself failed. */
export function explainCall(address: string, error: RegistryError): Finding | undefined {
  switch (error.code) {
    case "UNAUTHENTICATED":
      return fail(
        "credentials",
        `the registry at ${address} does not accept this caller: ${error.message}`,
        "set TOOLCRIB_TOKEN or TOOLCRIB_TOKEN_FILE (or TOOLCRIB_CERT and TOOLCRIB_KEY) to what its operator gave you",
      );
    case "PERMISSION_DENIED":
      return fail(
        "credentials",
        `the registry at ${address} knows this caller, and refuses: ${error.message}`,
        "ask its operator for a grant of the role reader in this namespace, or name another with --namespace",
      );
    case "UNIMPLEMENTED":
      // A registry has the service; a gRPC server without it is something else, and so is a web server that answers 404.
      return fail(CHECK, `what listens at ${address} is no Toolcrib registry: ${error.message}`, NAME_IT);
    case "UNAVAILABLE":
    case "DEADLINE_EXCEEDED":
    case "CANCELLED":
    case "INTERNAL":
    case "UNKNOWN":
      return error.reason === ""
        ? undefined
        : fail(
            CHECK,
            `the registry at ${address} cannot answer: ${error.message}`,
            "try again in a moment; its log and /readyz say more",
          );
    default:
      return fail(CHECK, `the registry at ${address} answers ${error.code}: ${error.message}`, "look at its log");
  }
}

/** Why a call got no answer: nobody can be reached there, or somebody else listens. */
export async function explainNoAnswer(address: string, error: RegistryError): Promise<Finding> {
  const reached = await reach(placeOf(address), DIAL_MS);
  return reached === "open" ? explainSilence(address, error) : notReached(address, reached);
}

/** Somebody listens, and no gRPC call gets through: who is it? */
async function explainSilence(address: string, error: RegistryError): Promise<Finding> {
  const said = detailsOf(error);
  if (/wrong version number|packet length too long/i.test(said)) {
    return fail(
      "certificate",
      `${address} does not speak TLS`,
      "give its address with grpc:// instead of grpcs:// or https://",
    );
  }
  return certificateProblem(address, said) ?? otherProtocol(address, await speaks(placeOf(address), DIAL_MS), said);
}

/** In the order in which they are looked for. */
const CERTIFICATE: readonly (readonly [RegExp, string, string])[] = [
  [
    /certificate has expired|CERT_HAS_EXPIRED/i,
    "has expired",
    "have its operator renew it; compare the clocks of both machines",
  ],
  [/not yet valid/i, "is not valid yet", "compare the clocks of both machines"],
  [
    /altnames|Hostname\/IP does not match/i,
    "is for another host name",
    "use a name that the certificate holds, or have its operator add this one",
  ],
  [
    /self.signed|unable to (?:verify|get)|local issuer|unknown ca/i,
    "is signed by nobody that is trusted here",
    "name the authority's PEM file in TOOLCRIB_CA",
  ],
  [
    /certificate required|handshake failure|bad certificate/i,
    "is fine, but it wants one from this side",
    "name a client certificate and its key in TOOLCRIB_CERT and TOOLCRIB_KEY",
  ],
];

function certificateProblem(address: string, said: string): Finding | undefined {
  const known = CERTIFICATE.find(([pattern]) => pattern.test(said));
  return known && fail("certificate", `the certificate of ${address} ${known[1]}: ${said}`, known[2]);
}

function otherProtocol(address: string, what: Speaks, said: string): Finding {
  const more = said === "" ? "" : ` (${said})`;
  switch (what) {
    case "http2":
      return fail(
        CHECK,
        `${address} speaks HTTP/2 but does not answer gRPC calls in time${more}`,
        "look at the load and the log of what listens there; if that is no registry, " + NAME_IT,
      );
    case "http1":
      return fail(
        CHECK,
        `${address} is a web server, not a gRPC server`,
        `${NAME_IT}; the gRPC port is 7850 unless it was set otherwise, 7851 and 7852 are for HTTP`,
      );
    case "tls":
      return fail(
        "certificate",
        `${address} speaks TLS, and the handshake from here fails${more}`,
        `use grpcs://${address} as the registry, with TOOLCRIB_CA for its authority and TOOLCRIB_CERT and TOOLCRIB_KEY where it wants to know the caller`,
      );
    case "silence":
      return fail(
        CHECK,
        `${address} accepts connections and then says nothing: no gRPC server, or one that hangs`,
        `restart what listens there, or ${NAME_IT}`,
      );
    case "something-else":
      return fail(CHECK, `${address} is not a gRPC server: it answers in another protocol`, NAME_IT);
  }
}

/** grpc-js's own words about a failed connection. */
function detailsOf(error: RegistryError): string {
  const { details } = (error.cause ?? {}) as { readonly details?: unknown };
  const text = typeof details === "string" ? details : "";
  return /Last error: (.*?)(?:\. Resolution note.*)?$/s.exec(text)?.[1]?.replace(/^Error: /, "") ?? text;
}
