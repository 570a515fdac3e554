import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { SETTINGS } from "../../../src/config/settings.js";
import { readValue } from "../../../src/config/values.js";
import { readTokens } from "../../../src/rpc/identity/tokens.js";

const FOLDER = new URL("../../../deploy/kubernetes/", import.meta.url);

type Manifest = any;

/** Every document of a file; a duplicate key or a wrong indent is an error here. */
function documents(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(new URL(file, FOLDER), "utf8")).map((document) => {
    expect(document.errors, file).toEqual([]);
    return document.toJS() as Manifest;
  });
}

const kustomization = documents("kustomization.yaml")[0];
const all = (kustomization.resources as string[]).flatMap(documents);
const one = (kind: string): Manifest => {
  const found = all.filter((manifest) => manifest.kind === kind);
  expect(found, kind).toHaveLength(1);
  return found[0];
};
const deployment = one("Deployment").spec;
const pod = deployment.template.spec;
const container = pod.containers[0];
const podLabels = deployment.template.metadata.labels as Record<string, string>;
const config = one("ConfigMap").data as Record<string, string>;
const secrets = documents("secret.example.yaml");
const ports = new Map<string, number>(container.ports.map((port: Manifest) => [port.name, port.containerPort]));

describe("the Kubernetes manifests", () => {
  it("select the pods that the Deployment makes", () => {
    const selectors = [
      deployment.selector.matchLabels,
      one("PodDisruptionBudget").spec.selector.matchLabels,
      one("NetworkPolicy").spec.podSelector.matchLabels,
      ...all.filter((m) => m.kind === "Service").map((m) => m.spec.selector),
      ...pod.topologySpreadConstraints.map((c: Manifest) => c.labelSelector.matchLabels),
    ];
    for (const selector of selectors) expect(podLabels).toMatchObject(selector);
    expect(deployment.replicas).toBeGreaterThan(one("PodDisruptionBudget").spec.minAvailable);
  });

  it("name the ports as the container does, at the defaults of the settings", () => {
    const fallback = (name: string) =>
      Number(
        SETTINGS.find((s) => s.name === name)
          ?.fallback.split(":")
          .at(-1),
      );
    expect(ports.get("grpc")).toBe(fallback("grpcAddress"));
    expect(ports.get("ops")).toBe(fallback("opsAddress"));
    for (const service of all.filter((m) => m.kind === "Service"))
      for (const port of service.spec.ports) expect(ports.get(port.targetPort), service.metadata.name).toBe(port.port);
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
      expect(ports.has(probe.httpGet.port)).toBe(true);
    for (const { ports: admitted } of one("NetworkPolicy").spec.ingress)
      for (const { port } of admitted) expect(ports.has(port)).toBe(true);
  });

  it("let Prometheus find exactly one Service, under the job name of the alerts", () => {
    const monitor = one("ServiceMonitor").spec;
    const matching = all.filter(
      (m) =>
        m.kind === "Service" &&
        Object.entries(monitor.selector.matchLabels).every(([key, value]) => m.metadata.labels[key] === value),
    );
    expect(matching.map((m) => m.metadata.name)).toEqual(["toolcrib-ops"]);
    expect(matching[0].spec.ports.map((port: Manifest) => port.name)).toContain(monitor.endpoints[0].port);
    expect(matching[0].metadata.labels[monitor.jobLabel]).toBe("toolcrib");
  });

  it("give settings that the registry knows, with values it takes, and the secrets that the example makes", () => {
    const given: Record<string, string> = { ...config };
    for (const { secretRef, configMapRef } of container.envFrom) {
      if (configMapRef) expect(configMapRef.name).toBe(one("ConfigMap").metadata.name);
      if (secretRef) Object.assign(given, secrets.find((s) => s.metadata.name === secretRef.name)?.stringData);
    }
    expect(Object.keys(given)).toEqual(expect.arrayContaining(["TOOLCRIB_STORE", "TOOLCRIB_TOKENS_FILE"]));
    for (const [variable, text] of Object.entries(given)) {
      const setting = SETTINGS.find((s) => s.variable === variable);
      expect(setting, variable).toBeDefined();
      expect(readValue(setting!.kind, text), variable).toMatchObject({ ok: true });
    }
    for (const { secret } of pod.volumes) expect(secrets.map((s) => s.metadata.name)).toContain(secret.secretName);
    for (const mount of container.volumeMounts) expect(pod.volumes.map((v: Manifest) => v.name)).toContain(mount.name);
    const mounted = container.volumeMounts.find((mount: Manifest) =>
      given["TOOLCRIB_TOKENS_FILE"]?.startsWith(`${mount.mountPath}/`),
    );
    const file = given["TOOLCRIB_TOKENS_FILE"]?.slice(mounted.mountPath.length + 1) ?? "";
    const tokens = secrets.find(
      (s) => s.metadata.name === pod.volumes.find((v: Manifest) => v.name === mounted.name).secret.secretName,
    );
    expect(readTokens(Buffer.from(tokens.stringData[file]))).toMatchObject({ ok: true });
  });

  it("leave no variable that the registry would refuse: service links are off", () => {
    expect(pod.enableServiceLinks).toBe(false);
  });

  it("give a stop longer than preStop and the registry's own grace take", () => {
    const preStopMs = Number(/, (\d+)\)/.exec(container.lifecycle.preStop.exec.command.at(-1))?.[1]);
    expect(preStopMs).toBeGreaterThan(0);
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(
      preStopMs + Number(config["TOOLCRIB_GRACE"]) + 5_000,
    );
  });

  it("run without rights, on a read-only root, within the namespace's restricted standard", () => {
    expect(one("Namespace").metadata.labels["pod-security.kubernetes.io/enforce"]).toBe("restricted");
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(kustomization.images[0].name).toBe(container.image);
  });

  it("let the registry out to the network that its egress policy allows", () => {
    const blocks = one("NetworkPolicy").spec.egress.flatMap((rule: Manifest) =>
      rule.to.map((to: Manifest) => to.ipBlock?.cidr),
    );
    for (const network of (config["TOOLCRIB_EGRESS_ALLOW"] ?? "").split(",")) expect(blocks).toContain(network);
  });
});
