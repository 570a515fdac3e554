/** A client over any link, in the few words that scenarios need. Everything that it does passes the link, and so a recorder. */
import { create, fromBinary, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { RenewResult_State as RenewState, WatchRequestSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { StubFilterSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { decodeMessage } from "./decode.js";
import type { Failure, Link } from "./links.js";
import { METHODS, type MethodName } from "./methods.js";

type Methods = typeof METHODS;
type Asked<N extends MethodName> = MessageInitShape<Methods[N]["input"]>;
type Answered<N extends MethodName> = MessageShape<Methods[N]["output"]>;
type FilterInit = MessageInitShape<typeof StubFilterSchema>;

/** What an instance holds after a Register. */
export interface Held {
  readonly revision: string;
  readonly leaseId: string;
  readonly setDigest: string;
  readonly etag: string;
}

export interface RegisterMore extends Pick<Asked<"register">, "etag" | "requestId" | "endpoint" | "allowEmpty" | "namespace"> {
  readonly instanceId?: string;
  /** 0 for standing; the default length if unsaid. */
  readonly ttlMs?: number;
}

/** A watch that remembers where it is. */
export class Watcher {
  /** The last token that it got, from what it resumed on. */
  token: string;
  bookmarks = 0;
  failure: Failure | undefined;
  #leave: () => void = () => undefined;

  constructor(resumeToken: string) {
    this.token = resumeToken;
  }

  open(link: Link, request: Uint8Array): this {
    this.#leave = link.watch(request, {
      message: (bytes) => {
        const message = decodeMessage(bytes);
        if (message.token !== "") this.token = message.token;
        if (message.kind === "bookmark") this.bookmarks++;
      },
      ended: (failure) => void (this.failure = failure),
    });
    return this;
  }

  leave(): void {
    this.#leave();
  }
}

export class Client {
  constructor(
    readonly name: string,
    readonly link: Link,
    /** Runs what may have to wait for time to pass. */
    private readonly drive: <T>(work: Promise<T>) => Promise<T> = (work) => work,
  ) {}

  async call<N extends MethodName>(method: N, request: Asked<N>): Promise<Answered<N>> {
    const { input, output } = METHODS[method] as Methods[MethodName];
    const bytes = toBinary(input, create(input, request as never) as never);
    return fromBinary(output, await this.drive(this.link.unary(method, bytes))) as Answered<N>;
  }

  /** Tools as definitions: objects, or texts where the bytes matter. */
  async register(serverId: string, tools: readonly (object | string)[], more: RegisterMore = {}): Promise<Held> {
    const { ttlMs, instanceId = "instance-1", ...rest } = more;
    const standing = ttlMs === 0;
    const { revision, lease, setDigest, etag } = await this.call("register", {
      serverId,
      instanceId,
      endpoint: standing ? "http://127.0.0.1:9/mcp" : "",
      ...rest,
      retention: standing
        ? { case: "standing", value: true }
        : ttlMs === undefined
          ? { case: undefined }
          : { case: "leaseTtl", value: durationFromMs(ttlMs) },
      offer: { case: "declared", value: { tools: tools.map((t) => ({ definition: bytesOf(t) })) } },
    });
    return { revision, leaseId: lease?.leaseId ?? "", setDigest, etag };
  }

  introspect(serverId: string, endpoint: string): Promise<Answered<"register">> {
    return this.call("register", {
      serverId,
      endpoint,
      retention: { case: "standing", value: true },
      offer: { case: "introspect", value: {} },
    });
  }

  /** The state's word. */
  async renew({ leaseId, setDigest }: Held, namespace = ""): Promise<string> {
    const { results } = await this.call("renew", { namespace, leases: [{ leaseId, setDigest }] });
    return RenewState[results[0]?.state ?? 0] as string;
  }

  deregister(target: NonNullable<Asked<"deregister">["target"]>, namespace = ""): Promise<Answered<"deregister">> {
    return this.call("deregister", { namespace, target });
  }

  /** All pages. Answers tool_ids as they are listed. */
  async list(more: { namespace?: string; filter?: FilterInit; pageSize?: number; minRevision?: string } = {}): Promise<string[]> {
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await this.call("getStubs", { ...more, pageToken });
      ids.push(...page.stubs.map((s) => s.toolId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return ids;
  }

  async definition(toolId: string, namespace = ""): Promise<string> {
    const { schema } = await this.call("getFullSchema", { namespace, key: { case: "toolId", value: toolId } });
    return Buffer.from(schema?.definition ?? []).toString();
  }

  watch(more: { namespace?: string; filter?: FilterInit; resumeToken?: string } = {}): Watcher {
    const request = toBinary(WatchRequestSchema, create(WatchRequestSchema, more));
    return new Watcher(more.resumeToken ?? "").open(this.link, request);
  }
}

function bytesOf(tool: object | string): Uint8Array {
  return Buffer.from(typeof tool === "string" ? tool : JSON.stringify(tool));
}
