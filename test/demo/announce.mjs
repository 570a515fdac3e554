/** Listens on a free loopback port and prints where, as one line of JSON. Ends when its parent's end of stdin does. */
export function announce(server) {
  server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/mcp` })));
  process.on("SIGTERM", () => process.exit(0));
  process.stdin.on("end", () => process.exit(0));
  process.stdin.on("error", () => process.exit(0));
  process.stdin.resume();
}
