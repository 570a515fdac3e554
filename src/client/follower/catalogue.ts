import { isDeepStrictEqual } from "node:util";
import { clone, create } from "@bufbuild/protobuf";
import { compareText, splitToolId } from "../../domain/ids.js";
import { type Event, EventSchema, EventType } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { Availability, type Stub, StubSchema } from "../../gen/toolcrib/v1/stub_pb.js";

/** A server as the catalogue knows it. */
export interface FollowedServer {
  readonly serverId: string;
  readonly availability: Availability;
  /** How many of its tools are in the catalogue. */
  readonly tools: number;
}

interface ServerTools {
  availability: Availability;
  readonly tools: Map<string, Stub>;
}

/** The tools that a follower knows of. Stubs are frozen: a change brings another one. */
export class LocalCatalogue {
  readonly #servers = new Map<string, ServerTools>();
  /** Made when somebody asks, dropped at every change. */
  #list: readonly Stub[] | undefined;

  static of(stubs: Iterable<Stub>): LocalCatalogue {
    const catalogue = new LocalCatalogue();
    for (const stub of stubs) catalogue.#put(stub);
    return catalogue;
  }

  stub(toolId: string): Stub | undefined {
    return this.#servers.get(serverOf(toolId))?.tools.get(toolId);
  }

  /** In tool_id order; never changes once given. */
  stubs(): readonly Stub[] {
    this.#list ??= Object.freeze(
      [...this.#servers.values()]
        .flatMap(({ tools }) => [...tools.values()])
        .sort((a, b) => compareText(a.toolId, b.toolId)),
    );
    return this.#list;
  }

  availability(serverId: string): Availability | undefined {
    return this.#servers.get(serverId)?.availability;
  }

  /** In server_id order. */
  servers(): FollowedServer[] {
    return [...this.#servers]
      .map(([serverId, { availability, tools }]) => ({ serverId, availability, tools: tools.size }))
      .sort((a, b) => compareText(a.serverId, b.serverId));
  }

  /**
   * Takes up the events of one revision. What an event does is read from what it carries and not from its type, because a
   * newer registry may send types that this client does not know: a tool with a label is there, one without is gone.
   */
  apply(events: readonly Event[]): void {
    this.#list = undefined;
    for (const event of events) {
      if (event.toolId === "") this.#setAvailability(event.serverId, event.availability);
      else if (event.stub) this.#put(event.stub);
      else this.#remove(event.toolId);
    }
  }

  /** The events that make this catalogue of another one: servers first, then tools, each in order of their ids. */
  differencesFrom(before: LocalCatalogue): Event[] {
    const events: Event[] = [];
    for (const { serverId, availability } of this.servers()) {
      const known = before.availability(serverId);
      if (known === undefined || known === availability) continue;
      events.push(create(EventSchema, { type: EventType.AVAILABILITY_CHANGED, serverId, availability }));
    }
    const ids = new Set([...before.stubs(), ...this.stubs()].map((stub) => stub.toolId));
    for (const id of [...ids].sort(compareText)) {
      const event = difference(before.stub(id), this.stub(id));
      if (event) events.push(event);
    }
    return events;
  }

  #put(stub: Stub): void {
    const serverId = serverOf(stub.toolId);
    const server = this.#servers.get(serverId) ?? { availability: stub.availability, tools: new Map() };
    server.availability = stub.availability;
    server.tools.set(stub.toolId, freeze(stub));
    this.#servers.set(serverId, server);
  }

  #remove(toolId: string): void {
    const serverId = serverOf(toolId);
    const server = this.#servers.get(serverId);
    server?.tools.delete(toolId);
    if (server?.tools.size === 0) this.#servers.delete(serverId);
  }

  #setAvailability(serverId: string, availability: Availability): void {
    const server = this.#servers.get(serverId);
    if (!server || availability === Availability.UNSPECIFIED) return;
    server.availability = availability;
    for (const [id, stub] of server.tools) server.tools.set(id, withAvailability(stub, availability));
  }
}

function serverOf(toolId: string): string {
  return splitToolId(toolId)?.serverId ?? "";
}

function freeze(stub: Stub): Stub {
  for (const value of Object.values(stub)) if (typeof value === "object") Object.freeze(value);
  return Object.freeze(stub);
}

function difference(before: Stub | undefined, after: Stub | undefined): Event | undefined {
  const known = after ?? before;
  if (!known) return undefined;
  const of = (type: EventType): Event =>
    create(EventSchema, {
      type,
      toolId: known.toolId,
      serverId: known.serverId,
      ...(after && { stub: after }),
      oldDigest: before?.digest ?? "",
      newDigest: after?.digest ?? "",
    });
  if (!before) return of(EventType.REGISTERED);
  if (!after) return of(EventType.DEREGISTERED);
  if (before.digest !== "" && before.digest !== after.digest) return of(EventType.SCHEMA_INVALIDATED);
  return sameLabel(before, after) ? undefined : of(EventType.UPDATED);
}

/** But for the availability, which is told of the server. */
function sameLabel(before: Stub, after: Stub): boolean {
  return isDeepStrictEqual({ ...before, availability: after.availability }, { ...after });
}

function withAvailability(stub: Stub, availability: Availability): Stub {
  return freeze(Object.assign(clone(StubSchema, stub), { availability }));
}
