/** How late the event loop is, once a second, and what follows from it for how much this replica takes on. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock, Logger } from "../catalogue/ports.js";
import { CALM, type Overload, type OverloadLevel, overloadAfter, SHEDDABLE } from "../domain/overload.js";

/** One look, and so one window of the overload machine. */
const WINDOW_MS = 1_000;
/** Between two ticks that are timed: a hundred a second cost nothing, and a median of fewer would be coarse. */
const TICK_MS = 10;

export interface Load {
  readonly level: OverloadLevel;
  stop(): void;
}

export interface LoadDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onLevel: (level: OverloadLevel) => void;
  /** Median delay of the last window, ms; by default the process's own. */
  readonly delay?: DelaySource;
}

export interface DelaySource {
  /** Median delay since the last call, ms. */
  median(): number;
  stop(): void;
}

/** The process's own event loop. */
export function eventLoopDelay(): DelaySource {
  const histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: TICK_MS });
  histogram.enable();
  return {
    median() {
      // Times are from tick to tick, so what is late is what is beyond the pace. Without a tick there is nothing to tell.
      const ms = histogram.count === 0 ? 0 : histogram.percentile(50) / 1e6 - TICK_MS;
      histogram.reset();
      return Math.max(0, ms);
    },
    stop: () => void histogram.disable(),
  };
}

export function watchLoad({ clock, logger, onLevel, delay = eventLoopDelay() }: LoadDeps): Load {
  const stop = new AbortController();
  let state: Overload = CALM;
  const look = (): void => {
    const medianMs = delay.median();
    const { level } = state;
    state = overloadAfter(state, medianMs);
    if (state.level === level) return;
    onLevel(state.level);
    const facts = { level: state.level, median_delay_ms: Math.round(medianMs), shed: SHEDDABLE.slice(0, state.level) };
    if (state.level > level) logger.warn(facts, "this replica has too much to do and refuses more");
    else logger.info(facts, "this replica has less to do and takes on more again");
  };
  const loop = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(WINDOW_MS, stop.signal);
      if (stop.signal.aborted) return delay.stop();
      look();
    }
  };
  void loop();
  return {
    get level() {
      return state.level;
    },
    stop: () => stop.abort(),
  };
}
