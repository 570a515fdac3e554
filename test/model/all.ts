/** A run: any commands on a fresh registry, and then every validator on what was seen. */
import fc from "fast-check";
import { verdict } from "../validators/validators.js";
import {
  DeregisterLease,
  DeregisterServer,
  DeregisterTool,
  Expire,
  named,
  Operate,
  Quarantine,
  Race,
  Register,
  RegisterGuarded,
  registering,
  Renew,
  RenewLate,
  Repeat,
  type Step,
} from "./commands.js";
import type { OpenGround } from "./ground.js";
import { Model } from "./model.js";
import { Lose, Rewind, Save } from "./losing.js";
import { filterName, Leave, Load, Read, Reopen, Resume, Watch } from "./reading.js";
import { NAMESPACES, Real } from "./real.js";

const replica = fc.nat(1);
const somebody = registering.map(named);
const often = registering.map((r) => new Register(r));

/** A command that comes up more often stands here more often. */
const COMMANDS: fc.Arbitrary<Step>[] = [
  often,
  often,
  often,
  fc.tuple(registering, fc.boolean()).map(([r, current]) => new RegisterGuarded(r, current)),
  registering.map((r) => new Repeat(r)),
  fc.tuple(registering, registering).map(([one, other]) => new Race(one, other)),
  somebody.map((s) => new Renew(s)),
  replica.map((n) => new RenewLate(n)),
  fc.tuple(somebody, fc.boolean()).map(([s, oldest]) => new DeregisterLease(s, oldest)),
  somebody.map((s) => new DeregisterServer(s)),
  fc.tuple(somebody, fc.constantFrom("t1", "t2", "u1")).map(([s, name]) => new DeregisterTool(s, name)),
  fc.constant(new Expire()),
  fc.tuple(somebody, fc.constantFrom("isolateServer" as const, "resumeServer" as const)).map(([s, action]) => new Operate(s, action)),
  fc.tuple(somebody, fc.constantFrom("t1", "t2", "u1"), fc.boolean()).map(([s, name, any]) => new Quarantine(s, name, any)),
  fc.tuple(filterName, fc.constantFrom(0, 1, 2)).map(([filter, size]) => new Read(filter, size)),
  replica.map((n) => new Load(n)),
  fc.tuple(replica, fc.constantFrom(...NAMESPACES), filterName).map((w) => new Watch(...w)),
  fc.tuple(replica, fc.constantFrom(...NAMESPACES), filterName).map((w) => new Watch(...w)),
  fc.nat(3).map((n) => new Leave(n)),
  fc.tuple(replica, fc.nat(3)).map((r) => new Resume(...r)),
  fc.constant(new Lose()),
  fc.constant(new Save()),
  fc.constant(new Rewind()),
  fc.constant(new Reopen()),
];

export interface Runs {
  readonly runs: number;
  readonly commands: number;
  /** Ends early, without a failure, when this has passed. */
  readonly limitMs: number;
}

/** Throws with seed, path and the shortest commands that were found to fail. */
export function explore(open: OpenGround, { runs, commands, limitMs }: Runs): Promise<void> {
  const property = fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: commands, size: "max" }), async (steps) => {
    const ground = await open();
    try {
      const model = new Model();
      const real = new Real(ground);
      await real.ready();
      await fc.asyncModelRun(() => ({ model, real }), steps);
      await last(model, real);
      const broken = verdict(ground.recorder.history());
      if (broken.length > 0) throw new Error(broken.join("\n"));
    } finally {
      await ground.close();
    }
  });
  const seed = process.env["MODEL_SEED"];
  return fc.assert(property, {
    numRuns: runs,
    interruptAfterTimeLimit: limitMs,
    ...(seed !== undefined && { seed: Number(seed) }),
    ...(process.env["MODEL_PATH"] !== undefined && { path: process.env["MODEL_PATH"] }),
  });
}

/** One more change in each namespace, and all who watch it have heard of everything before. */
async function last(model: Model, real: Real): Promise<void> {
  for (const namespace of NAMESPACES) {
    const r = { replica: 0, namespace, serverId: "s1", instance: "instance-last", set: { t1: 9 }, mortal: false };
    await new Register(r).run(model, real);
  }
  for (const filter of ["everything", "what is available"]) await new Read(filter, 0).run(model, real);
  const heard = async (): Promise<boolean> => real.open.every((o) => o.watcher.failure || o.watcher.token !== "");
  await real.ground.until(heard);
}
