/** What the catalogue tells of itself, as metrics and notices. */
import type { RegistryObserver } from "./catalogue/observer.js";
import type { Notices } from "./notices.js";
import type { Metrics } from "./ops/metrics.js";

export function observerOf(metrics: Metrics, notices: Notices): RegistryObserver {
  // A gauge of a replica is the sum over its partitions, each of which is swept by itself.
  const live = new Map<number, number>();
  return {
    shed: (what) => metrics.shed.inc({ what }),
    commit: (result) => metrics.commits.inc({ result }),
    registered: (outcome) => metrics.registers.inc({ outcome }),
    relist: (cause) => metrics.relists.inc({ cause }),
    restored: (servers) => metrics.restored.inc(servers),
    blobsSwept: (count) => metrics.blobsSwept.inc(count),
    renewed: (state) => metrics.leaseRenewals.inc({ state }),
    swept: (partition, report) => {
      const { decision, leases, expired } = report;
      notices.swept(partition, report);
      metrics.brakeEngaged.set(notices.braked ? 1 : 0);
      metrics.sweeps.inc({ result: decision.brake === "on" ? decision.reason : "ok" });
      live.set(partition, leases);
      metrics.leasesLive.set([...live.values()].reduce((sum, count) => sum + count, 0));
      metrics.leaseExpirations.inc(expired);
    },
  };
}
