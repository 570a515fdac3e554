const LOOK_EVERY_MS = 500;

/**
 * npx runs a command through a shell, and passes a signal on to that shell, which ends without passing it on. So where
 * npx started us, the end of our parent is our SIGTERM; elsewhere (a daemon, nohup) a parent may end and mean nothing.
 */
export function endWithNpx(env: NodeJS.ProcessEnv): void {
  if (env["npm_command"] !== "exec" || process.platform === "win32") return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, LOOK_EVERY_MS);
  timer.unref();
}
