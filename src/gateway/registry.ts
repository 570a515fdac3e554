/** The registry as the gateway asks it: in its namespace, for a caller, and not for ever. */
import { RegistryError, SchemaView, type RegistryConnection } from "../client/index.js";
import type { Caller } from "./words.js";

type Method = keyof RegistryConnection;
type Call<N extends Method> = RegistryConnection[N] extends (request: infer R, ...rest: never[]) => Promise<infer A>
  ? { readonly request: Omit<R, "namespace" | "$typeName" | "$unknown">; readonly answer: A }
  : never;

/** A local answer takes a millisecond; what takes longer than this is away. */
export const ASK_MS = 3_000;

/** One namespace of a registry. Every method rejects with RegistryError. */
export class RegistryLink {
  readonly #connection: RegistryConnection;

  constructor(
    connection: RegistryConnection,
    readonly namespace: string,
  ) {
    this.#connection = connection;
  }

  get connection(): RegistryConnection {
    return this.#connection;
  }

  /** Asks for next to nothing, as the caller. */
  async greet(caller: Caller): Promise<void> {
    await this.#connection.getStubs({ namespace: this.namespace, pageSize: 1 }, this.#as(caller));
  }
  /** Whether the caller may know that there is this server. */
  async shows(caller: Caller, serverId: string): Promise<boolean> {
    try {
      await this.#connection.getServer({ namespace: this.namespace, serverId }, this.#as(caller));
      return true;
    } catch (error) {
      if (error instanceof RegistryError && error.reason === "NOT_FOUND") return false;
      throw error;
    }
  }
  findTools(caller: Caller, request: Call<"findTools">["request"]): Promise<Call<"findTools">["answer"]> {
    return this.#connection.findTools({ ...request, namespace: this.namespace }, this.#as(caller));
  }
  moduleMap(caller: Caller, request: Call<"getModuleMap">["request"]): Promise<Call<"getModuleMap">["answer"]> {
    return this.#connection.getModuleMap({ ...request, namespace: this.namespace }, this.#as(caller));
  }
  schemas(caller: Caller, toolIds: readonly string[], timeoutMs: number): Promise<Call<"batchGetFullSchemas">["answer"]> {
    const request = { namespace: this.namespace, toolIds: [...toolIds], view: SchemaView.FULL };
    return this.#connection.batchGetFullSchemas(request, { ...this.#as(caller), timeoutMs });
  }
  createToolset(caller: Caller, request: Call<"createToolset">["request"]): Promise<Call<"createToolset">["answer"]> {
    return this.#connection.createToolset({ ...request, namespace: this.namespace }, this.#as(caller));
  }
  getToolset(caller: Caller, handle: string): Promise<Call<"getToolset">["answer"]> {
    return this.#connection.getToolset({ namespace: this.namespace, handle, touch: true }, this.#as(caller));
  }
  updateToolset(caller: Caller, request: Call<"updateToolset">["request"]): Promise<Call<"updateToolset">["answer"]> {
    return this.#connection.updateToolset({ ...request, namespace: this.namespace }, this.#as(caller));
  }
  deleteToolset(caller: Caller, handle: string): Promise<Call<"deleteToolset">["answer"]> {
    return this.#connection.deleteToolset({ namespace: this.namespace, handle }, this.#as(caller));
  }
  reportOutcome(caller: Caller, request: Call<"reportOutcome">["request"]): Promise<Call<"reportOutcome">["answer"]> {
    return this.#connection.reportOutcome({ ...request, namespace: this.namespace }, this.#as(caller));
  }

  #as({ token }: Caller): { readonly timeoutMs: number; readonly token: string | undefined } {
    return { timeoutMs: ASK_MS, token };
  }
}
