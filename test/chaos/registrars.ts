/** A child process with real registrars: servers that change their tools, are deployed anew, crash, leave and come back. */
import { agentFor } from "../../src/client/agent.js";
import { declareTools } from "../../src/client/offer.js";
import { Registration } from "../../src/client/registration.js";
import { systemTimers } from "../../src/client/timers.js";
import { SeededRandom } from "../support/fake-clock.js";
import { Endpoint } from "./endpoint.js";
import { type FromChild, LEASE_MS, type RegistrarOrders, type ServerSpec, type ToChild } from "./messages.js";
import { sleep } from "./redis-side.js";
import { type NamedReplica, tapWrites } from "./taps.js";
import { Tape } from "./tape.js";

const say = (message: FromChild): void => void process.send?.(message);

/** Mean time between two things that happen to one server. */
const EVENTFUL_MS = 25_000;

interface Instance {
  readonly registration: Registration;
  /** Stops without a word, as a process that crashed. */
  vanish(): void;
}

class Site {
  #tools: string[] = [];
  #version = 0;
  #born = 0;
  #instances: Instance[] = [];

  constructor(
    private readonly spec: ServerSpec,
    private readonly crowd: Crowd,
    private readonly endpoint: Endpoint | undefined,
  ) {
    this.#change();
    this.#enter();
  }

  /** One thing that happens to servers. */
  async turn(): Promise<void> {
    const draw = this.crowd.random.next();
    if (draw < 0.5) this.#set();
    else if (draw < 0.7) await this.#roll(draw < 0.6);
    else if (draw < 0.8) await this.#scale();
    else if (draw < 0.9) this.#crash();
    else await this.#pause();
  }

  /** New tools, the same instances. */
  #set(): void {
    this.#change();
    for (const { registration } of this.#instances) registration.changed();
  }

  /** A new instance, and then the old ones go; `same` tools or others. */
  async #roll(same: boolean): Promise<void> {
    const old = this.#instances;
    this.#instances = [];
    if (!same) this.#change();
    this.#enter();
    await this.#registered();
    await Promise.all(old.map(({ registration }) => registration.close()));
  }

  /** A second instance for a while. */
  async #scale(): Promise<void> {
    this.#enter();
    await sleep(2_000 + this.crowd.random.next() * 6_000);
    const [first, ...others] = this.#instances;
    if (!first) return;
    this.#instances = [first];
    await Promise.all(others.map(({ registration }) => registration.close()));
  }

  /** Its process crashed and was started again: the old lease ends by itself. */
  #crash(): void {
    for (const instance of this.#instances) instance.vanish();
    this.#instances = [];
    this.#enter();
  }

  async #pause(): Promise<void> {
    const old = this.#instances;
    this.#instances = [];
    this.#believe(undefined);
    await Promise.all(old.map(({ registration }) => registration.close()));
    await sleep(2_000 + this.crowd.random.next() * 6_000);
    this.#enter();
    this.#believe(this.#names);
  }

  /** While the registry cannot be reached, the old instances stay. */
  async #registered(): Promise<void> {
    for (let i = 0; i < 100 && this.#instances[0]?.registration.leaseId === undefined; i++) await sleep(100);
  }

  get #names(): string[] {
    return this.#tools.map((text) => (JSON.parse(text) as { name: string }).name).sort();
  }

  #change(): void {
    const { random } = this.crowd;
    this.#version++;
    const count = 2 + Math.floor(random.next() * 3);
    const version = `${this.crowd.life}.${this.#version}`;
    this.#tools = Array.from({ length: count }, (_, i) => definition(this.spec.serverId, `t${i}`, random.next() < 0.6 ? version : "first"));
    this.endpoint?.serve(this.#tools);
    this.#believe(this.#names);
  }

  #believe(tools: readonly string[] | undefined): void {
    this.crowd.tape.believes(this.spec.namespace, this.spec.serverId, tools);
    say({ kind: "belief", namespace: this.spec.namespace, serverId: this.spec.serverId, tools });
  }

  #enter(): void {
    const { crowd, spec, endpoint } = this;
    const replica = crowd.anyReplica();
    const target = { address: replica.address, loopback: true, tls: false };
    const agent = agentFor(target, spec.namespace, systemTimers, () => crowd.random.next());
    tapWrites(agent.connection, crowd.tape, replica.name);
    const identity = {
      serverId: spec.serverId,
      instanceId: `${spec.serverId}-${crowd.life}-${++this.#born}`,
      endpoint: endpoint?.url ?? "",
      title: "",
      tags: spec.tags,
      ttlMs: LEASE_MS,
      credential: "",
      sharePrivate: false,
      probe: undefined,
    };
    let gone = false;
    // A process that is gone says nothing more: a Register that was about to be tried again waits for its tools for ever.
    const offer = async () => {
      if (gone) await new Promise<never>(() => undefined);
      return declareTools(this.#tools.map((text) => Buffer.from(text)), endpoint ? "digests" : "inline");
    };
    const registration = new Registration(agent, identity, offer, () => undefined, () => crowd.random.next());
    const vanish = (): void => {
      // Nothing renews it any more, and nobody deregisters it.
      gone = true;
      agent.leave(registration);
      crowd.tape.flush();
    };
    this.#instances.unshift({ registration, vanish });
  }
}

function definition(serverId: string, name: string, version: string): string {
  const properties = { of: { type: "string", description: `What ${name} works on` } };
  return JSON.stringify({ name, description: `${name} of ${serverId}, version ${version}.`, inputSchema: { type: "object", properties } });
}

class Crowd {
  readonly tape: Tape;
  readonly random: SeededRandom;
  /** Tells one life of this process from the next. */
  readonly life: string;
  #calm = false;
  readonly #endpoints: Endpoint[] = [];

  constructor(private readonly orders: RegistrarOrders) {
    this.life = `p${process.pid}`;
    // What is not out of the process when it is killed never happened, as far as the history knows.
    this.tape = new Tape(orders.tape, `r${orders.index}-${process.pid}`, { urgent: true });
    this.random = new SeededRandom(orders.seed);
  }

  anyReplica(): NamedReplica {
    const { replicas } = this.orders;
    return replicas[Math.floor(this.random.next() * replicas.length)] as NamedReplica;
  }

  async begin(): Promise<void> {
    for (const spec of this.orders.servers) {
      const endpoint = spec.dialled ? await Endpoint.open(this.tape, spec) : undefined;
      if (endpoint) this.#endpoints.push(endpoint);
      void this.#live(new Site(spec, this, endpoint));
    }
    say({ kind: "ready" });
  }

  calm(): void {
    this.#calm = true;
  }

  down(ms: number): void {
    for (const endpoint of this.#endpoints) endpoint.fail(this.random.next() < 0.5 ? "refuses" : "hangs", ms);
  }

  async #live(site: Site): Promise<void> {
    for (;;) {
      await sleep(-Math.log(1 - this.random.next()) * EVENTFUL_MS + 500);
      if (this.#calm) return;
      await site.turn();
    }
  }
}

let crowd: Crowd | undefined;
process.on("disconnect", () => process.exit(0));
process.on("message", (message: ToChild) => {
  if (message.kind === "begin" && message.orders.kind === "registrars") {
    crowd = new Crowd(message.orders);
    void crowd.begin();
  } else if (message.kind === "calm") crowd?.calm();
  else if (message.kind === "servers-down") crowd?.down(message.ms);
  else if (message.kind === "finish") {
    crowd?.tape.close();
    say({ kind: "finished" });
    process.exit(0);
  }
});
