/** The one door of every listener: credentials in, the use-cases as this caller may use them out. */
import { Fault } from "../../domain/fault.js";
import { EVERYBODY, type Principal, may } from "../../domain/identity.js";
import { DEFAULT_NAMESPACE } from "../../domain/ids.js";
import { type Authenticator, type Credentials, unauthenticated } from "./authenticator.js";
import type { Api } from "../api.js";
import { GuardedApi, type Rooms } from "./guard.js";

export interface Caller {
  readonly principal: Principal;
  /** What every call of this caller goes through. */
  readonly api: Api;
}

export interface Door {
  /** Throws or rejects with Fault UNAUTHENTICATED. At once where no work is needed, so that a hot read does not wait. */
  enter(credentials: Credentials): Caller | Promise<Caller>;
  /**
   * For what stays open, such as a watch of `namespace`: calls `end` once, when the credential ends, is taken away or
   * comes to mean something else there. Answers what stops the looking.
   */
  stay(credentials: Credentials, caller: Caller, namespace: string, end: (thrown: unknown) => void): () => void;
}

export function createDoor(rooms: Rooms, authenticator: Authenticator): Door {
  const callers = new WeakMap<Principal, Caller>();
  const callerOf = (principal: Principal): Caller => {
    const known = callers.get(principal);
    if (known) return known;
    const caller = { principal, api: new GuardedApi(rooms, principal) };
    callers.set(principal, caller);
    return caller;
  };
  return {
    enter(credentials) {
      const principal = authenticator.authenticate(credentials);
      return principal instanceof Promise ? principal.then(callerOf) : callerOf(principal);
    },
    stay(credentials, caller, namespace, end) {
      if (caller.principal === EVERYBODY) return () => undefined;
      return new Stay(authenticator, credentials, caller.principal, namespace || DEFAULT_NAMESPACE, end).stop;
    },
  };
}

/** Longest wait that a timer takes. */
const TIMER_MS = 2 ** 31 - 1;

/** A credential that could not be judged is looked at again after this. */
const AGAIN_MS = 5_000;

class Stay {
  private timer: NodeJS.Timeout | undefined;
  private readonly forget: () => void;
  private open = true;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly credentials: Credentials,
    private principal: Principal,
    private readonly namespace: string,
    private readonly end: (thrown: unknown) => void,
  ) {
    this.forget = authenticator.onChange(() => void this.look());
    this.wait();
  }

  readonly stop = (): void => {
    this.open = false;
    clearTimeout(this.timer);
    this.forget();
  };

  private wait(): void {
    clearTimeout(this.timer);
    const { expiresAtMs } = this.principal;
    if (expiresAtMs !== undefined) this.lookAfter(Math.max(0, expiresAtMs - Date.now()) + 1);
  }

  private lookAfter(ms: number): void {
    this.timer = setTimeout(() => void this.look(), Math.min(ms, TIMER_MS)).unref();
  }

  private async look(): Promise<void> {
    try {
      const now = await this.authenticator.authenticate(this.credentials);
      if (!this.open) return;
      if (!this.sameAs(now)) throw unauthenticated("what the credential allows has changed: call again with it");
      this.principal = now;
      this.wait();
    } catch (thrown) {
      if (!this.open) return;
      // Keys that cannot be fetched at the moment say nothing against a credential that was good.
      if (thrown instanceof Fault && thrown.reason === "NOT_READY") return this.lookAfter(AGAIN_MS);
      this.stop();
      this.end(thrown);
    }
  }

  private sameAs(now: Principal): boolean {
    const reads = (principal: Principal): boolean => may(principal, "read", this.namespace);
    return now.id === this.principal.id && reads(now) === reads(this.principal);
  }
}
