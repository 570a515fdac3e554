/** Hubs and resumes that break P1 to P4. */
import { Fault } from "../../../src/domain/fault.js";
import { everything, filterHash } from "../../../src/domain/filter.js";
import { formatResumeToken } from "../../../src/domain/revision.js";
import type { WatchResponse } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { Broken } from "../site.js";
import { at, hub, type Mutant } from "./mutant.js";

type Change = Extract<WatchResponse["message"], { case: "change" }>["value"];

const changeOf = ({ message }: WatchResponse): Change | undefined => (message.case === "change" ? message.value : undefined);

/** Drops the change with this number for each of its watchers. */
function deafTo(number: number): Broken {
  return hub(() => {
    const hit = at(number);
    return (message, write) => {
      if (!(changeOf(message) && hit())) write(message);
    };
  });
}

export const WATCHING: readonly Mutant[] = [
  {
    promise: "P1",
    name: "a hub that tells the events of two revisions each under the other's name",
    script: "day",
    parts: {
      broken: hub((nth) => {
        let held: WatchResponse | undefined;
        return (message, write) => {
          const change = changeOf(message);
          if (nth !== 0 || !change) return write(message);
          const first = held && changeOf(held);
          if (!held) held = message;
          else if (first) {
            [first.events, change.events] = [change.events, first.events];
            write(held);
            write(message);
            held = undefined;
          }
        };
      }),
    },
    also: ["P2"],
  },
  {
    promise: "P1",
    name: "a hub that says of a tool what another replica does not say",
    script: "day",
    parts: {
      broken: hub(() => {
        const hit = at(3);
        return (message, write) => {
          const stub = changeOf(message) && hit() ? changeOf(message)?.events.find((e) => e.stub)?.stub : undefined;
          if (stub) stub.briefDescription = "Something else";
          write(message);
        };
      }),
    },
    also: ["P2"],
  },
  {
    promise: "P2",
    name: "a hub that drops one change",
    script: "day",
    parts: {
      broken: hub((nth) => {
        const hit = at(2);
        return (message, write) => {
          if (!(nth === 0 && changeOf(message) && hit())) write(message);
        };
      }),
    },
  },
  {
    promise: "P2",
    name: "hubs that drop the same change for everybody, so that only reads show it",
    script: "day",
    parts: { everywhere: deafTo(2) },
  },
  {
    promise: "P2",
    name: "a hub that tells a change twice",
    script: "day",
    parts: {
      broken: hub((nth) => (message, write) => {
        write(message);
        if (nth === 0 && changeOf(message)) write(message);
      }),
    },
  },
  {
    promise: "P2",
    name: "a hub that drops one event of a change",
    script: "day",
    parts: {
      broken: hub((nth) => (message, write) => {
        if (nth === 0) changeOf(message)?.events.splice(1, 1);
        write(message);
      }),
    },
    // A Register then shows only in part.
    also: ["P5"],
  },
  {
    promise: "P2",
    name: "a hub that forgets the last part of a change that was split",
    script: "day",
    parts: {
      broken: hub((nth) => (message, write) => {
        const change = changeOf(message);
        if (nth === 0 && change) change.resumeToken = "";
        write(message);
      }),
    },
  },
  {
    promise: "P3",
    name: "a hub that sends a bookmark too early",
    script: "day",
    parts: {
      broken: hub((nth) => {
        const last = at(5);
        let held: WatchResponse | undefined;
        return (message, write) => {
          if (nth === 0 && changeOf(message) && last()) held = message;
          else {
            write(message);
            if (held) write(held);
            held = undefined;
          }
        };
      }),
    },
  },
  {
    promise: "P4",
    name: "a resume that goes on at the head",
    script: "journey",
    parts: {
      broken: {
        api: (real) => ({
          async watch(input, sink) {
            const { position } = await real.stubs({ filter: input.filter, pageSize: 0, pageToken: "", minRevision: "", ifRevision: "" });
            const resumeToken = formatResumeToken(position, filterHash(everything("default")));
            return real.watch({ ...input, resumeToken: input.resumeToken && resumeToken }, sink);
          },
        }),
      },
    },
  },
  {
    promise: "P4",
    name: "a resume that begins again with a list",
    script: "journey",
    parts: { broken: { api: (real) => ({ watch: (input, sink) => real.watch({ ...input, resumeToken: "" }, sink) }) } },
  },
  {
    promise: "P4",
    name: "a replica that takes no other replica's token",
    script: "journey",
    parts: {
      broken: {
        api: (real) => ({
          async watch(input, sink) {
            if (input.resumeToken === "") return real.watch(input, sink);
            throw new Fault("RELIST_REQUIRED", "start again", { metadata: { cause: "chain" } });
          },
        }),
      },
    },
  },
  {
    promise: "P4",
    name: "a refusal without a cause",
    script: "journey",
    parts: {
      broken: {
        api: (real) => ({
          async watch(input, sink) {
            if (input.resumeToken === "") return real.watch(input, sink);
            throw new Fault("RELIST_REQUIRED", "start again");
          },
        }),
      },
    },
  },
  {
    promise: "P4",
    name: "tokens that stand for another place",
    script: "day",
    parts: {
      broken: hub(() => {
        let last = "";
        return (message, write) => {
          const { value } = message.message;
          if (value) [last, value.resumeToken] = [value.resumeToken, last || value.resumeToken];
          write(message);
        };
      }),
    },
  },
];
