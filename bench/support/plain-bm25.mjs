/** Plain BM25 over names and descriptions, as one would write it in an afternoon: what the gate is compared with, here and in test/eval. */
export class PlainBm25 {
  constructor(documents) {
    this.ids = documents.map(({ toolId }) => toolId);
    this.lengths = [];
    this.postings = new Map();
    for (const [doc, { name, description }] of documents.entries()) {
      const words = wordsOf(`${name} ${description}`);
      this.lengths.push(words.length);
      const counts = new Map();
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
      for (const [word, count] of counts) {
        if (!this.postings.has(word)) this.postings.set(word, []);
        this.postings.get(word).push({ doc, count });
      }
    }
    this.average = this.lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, documents.length);
  }

  find(text, limit) {
    const scores = new Map();
    for (const word of new Set(wordsOf(text))) {
      const list = this.postings.get(word) ?? [];
      const idf = Math.log(1 + (this.ids.length - list.length + 0.5) / (list.length + 0.5));
      for (const { doc, count } of list) {
        const length = 0.25 + (0.75 * this.lengths[doc]) / this.average;
        scores.set(doc, (scores.get(doc) ?? 0) + (idf * count * 2.2) / (count + 1.2 * length));
      }
    }
    const ranked = [...scores].sort((a, b) => b[1] - a[1] || (this.ids[a[0]] < this.ids[b[0]] ? -1 : 1));
    return ranked.slice(0, limit).map(([doc]) => this.ids[doc]);
  }
}

function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
