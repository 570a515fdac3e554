/** Medians and spreads of interleaved rounds. */

/** @returns {{ median: number, min: number, max: number }} */
export function summary(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted.at(-1) };
}

/**
 * Runs both sides in every round, the first one alternating, so that noise of the machine falls on both alike. The ratio
 * is taken inside each round.
 */
export async function interleave(rounds, ours, baseline) {
  const a = [];
  const b = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) {
      a.push(await ours());
      b.push(await baseline());
    } else {
      b.push(await baseline());
      a.push(await ours());
    }
  }
  return { ours: a, baseline: b };
}

/**
 * One line of the table. `pick` takes the figure out of a round's result. A limit is held or missed by the median of the
 * ratios (of the figures themselves when there is no baseline).
 */
export function row({ what, unit, rounds, pick = (x) => x, atLeast, atMost }) {
  const ours = rounds.ours.map(pick);
  const baseline = rounds.baseline?.map(pick);
  const ratio = baseline && summary(ours.map((value, i) => value / baseline[i]));
  const judged = (ratio ?? summary(ours)).median;
  const missed = (atLeast !== undefined && judged < atLeast) || (atMost !== undefined && judged > atMost);
  const limit = atLeast !== undefined ? `>= ${atLeast}` : atMost !== undefined ? `<= ${atMost}` : "";
  const verdict = limit === "" ? "" : missed ? "MISSED" : "held";
  return { what, unit, ours: summary(ours), baseline: baseline && summary(baseline), ratio, limit, verdict };
}
