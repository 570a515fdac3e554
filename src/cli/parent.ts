import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const LOOK_EVERY_MS = 500;

interface Ancestor {
  readonly pid: number;
  readonly parent: number;
  /** Its command line, or what it calls itself. */
  readonly command: string;
}

/** As npm calls itself while it runs a command, or as it was started. */
const NPX = /^(npm (exec|x)\b|npx\b|\S*node(\.exe)? (-\S+ )*\S*[/\\](npx|npm)(-cli\.js)?(\s|$))/;

/**
 * npx runs a command through a shell. A signal reaches that shell, which ends without passing it on, or npx alone ends, and
 * the shell stays. So the end of the npx that started us, or of its shell, is our SIGTERM. Elsewhere (a daemon, nohup) a
 * parent may end and mean nothing, also where variables of an npx further up were inherited.
 */
export function endWithNpx(env: NodeJS.ProcessEnv): void {
  if (env["npm_command"] !== "exec" || process.platform === "win32") return;
  const isGone = npxWatch();
  if (!isGone) return;
  const timer = setInterval(() => {
    if (!isGone()) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, LOOK_EVERY_MS);
  timer.unref();
}

/** Whether the npx that started us, with at most a shell between, is gone; undefined where none is there. */
function npxWatch(): (() => boolean) | undefined {
  const parent = lookAt(process.ppid);
  if (!parent) return undefined;
  const parentGone = (): boolean => process.ppid !== parent.pid;
  if (NPX.test(parent.command)) return parentGone;
  const above = lookAt(parent.parent);
  if (!above || !NPX.test(above.command)) return undefined;
  return () => parentGone() || !isStillUnder(parent.pid, above.pid);
}

/** An end that nobody waited for leaves a process id behind, but no children: so the shell's own parent is asked where it can be. */
function isStillUnder(pid: number, parent: number): boolean {
  if (process.platform === "linux") return lookInProc(pid)?.parent === parent;
  try {
    process.kill(parent, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function lookAt(pid: number): Ancestor | undefined {
  return process.platform === "linux" ? lookInProc(pid) : askPs(pid);
}

function lookInProc(pid: number): Ancestor | undefined {
  try {
    // The name in the second field may hold anything, parentheses too; the state and the parent follow its last one.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(parent), command };
  } catch {
    return undefined;
  }
}

function askPs(pid: number): Ancestor | undefined {
  try {
    const told = execFileSync("ps", ["-o", "ppid=,args=", "-p", String(pid)], { encoding: "utf8", timeout: 2_000 });
    const [, parent, command] = /^\s*(\d+)\s+(.*)/.exec(told) ?? [];
    return parent === undefined ? undefined : { pid, parent: Number(parent), command: command ?? "" };
  } catch {
    return undefined;
  }
}
