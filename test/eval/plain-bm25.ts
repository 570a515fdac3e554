import type { RetrievalSet, SetQuery } from "./sets.js";

/** Plain BM25 over names and descriptions, as one would write it in an afternoon: what the gate is compared with. */
export class PlainBm25 {
  private readonly postings = new Map<string, { readonly tool: number; readonly count: number }[]>();
  private readonly lengths: number[] = [];
  private readonly ids: string[];
  private readonly average: number;

  constructor({ tools }: RetrievalSet) {
    this.ids = tools.map((tool) => tool.id);
    for (const [tool, { name, description = "" }] of tools.entries()) {
      const words = wordsOf(`${name} ${description}`);
      this.lengths.push(words.length);
      const counts = new Map<string, number>();
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
      for (const [word, count] of counts) {
        const list = this.postings.get(word);
        if (list) list.push({ tool, count });
        else this.postings.set(word, [{ tool, count }]);
      }
    }
    this.average = this.lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, tools.length);
  }

  find({ text, history = [] }: Pick<SetQuery, "text" | "history">, limit: number): string[] {
    const scores = new Map<number, number>();
    for (const word of new Set(wordsOf([...history, text].join("\n")))) {
      const list = this.postings.get(word) ?? [];
      const idf = Math.log(1 + (this.ids.length - list.length + 0.5) / (list.length + 0.5));
      for (const { tool, count } of list) {
        const length = 0.25 + (0.75 * (this.lengths[tool] as number)) / this.average;
        scores.set(tool, (scores.get(tool) ?? 0) + (idf * count * 2.2) / (count + 1.2 * length));
      }
    }
    const ranked = [...scores].sort((a, b) => b[1] - a[1] || ((this.ids[a[0]] as string) < (this.ids[b[0]] as string) ? -1 : 1));
    return ranked.slice(0, limit).map(([tool]) => this.ids[tool] as string);
  }
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
