/** Lets the conformance suite start on Node 20: it imports `globSync`, which came with Node 22 and is used for other things only. */
const SHIM = `data:text/javascript,${encodeURIComponent('export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];')}`;

export async function resolve(specifier, context, next) {
  const asks = /^(node:)?fs$/.test(specifier) && context.parentURL?.includes("/conformance/dist/");
  return asks ? { url: SHIM, shortCircuit: true } : next(specifier, context);
}
