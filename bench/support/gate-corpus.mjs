/** Tools and intents in the likeness of a large catalogue: some words are everywhere, most are rare. The same in every run. */

const VERBS = "get list create update delete close open search find send export import approve cancel assign archive restore sync validate calculate".split(" ");
const COMMON = "order invoice customer report user file message project task issue payment product contract ticket account document page image calendar event".split(" ");
const FILLER = "the a of for with by from to and all its given specified returns record data value list details information system status current".split(" ");
const SYLLABLES = "ka ri to mel son dra vin por lex tam qua ber nol fi zu gra hem ost pli wer".split(" ");
const VOCABULARY = 20_000;

/** Numbers that look drawn at random and are not. */
export class Draw {
  constructor(seed) {
    this.state = seed;
  }

  next() {
    this.state = (this.state * 48_271) % 2_147_483_647;
    return this.state / 2_147_483_647;
  }

  below(limit) {
    return Math.floor(this.next() * limit);
  }

  of(items) {
    return items[this.below(items.length)];
  }
}

/** As in texts of people: the n-th word about 1/n as often as the first. */
function word(draw) {
  const rank = Math.floor(VOCABULARY ** draw.next());
  if (rank < COMMON.length) return COMMON[rank];
  let out = "";
  for (let n = rank; n > 0; n = Math.floor(n / SYLLABLES.length)) out += SYLLABLES[n % SYLLABLES.length];
  return out;
}

function sentence(draw, words) {
  return Array.from({ length: words }, () => (draw.next() < 0.4 ? draw.of(FILLER) : word(draw))).join(" ");
}

export function tools(count) {
  const draw = new Draw(7);
  return Array.from({ length: count }, (_, i) => {
    const serverId = `server-${Math.floor(i / 20)}`;
    const name = `${draw.of(VERBS)}_${word(draw)}_${word(draw)}_${i % 20}`;
    return {
      toolId: `${serverId}/${name}`,
      serverId,
      name,
      title: "",
      description: `${draw.of(VERBS)}s ${sentence(draw, 8 + draw.below(16))}.`,
      useWhen: "",
      keywords: [],
      tags: [word(draw)],
      service: `${word(draw)} ${word(draw)}`,
      parameters: Array.from({ length: draw.below(6) }, () => ({ name: `${word(draw)}_id`, description: sentence(draw, 8), values: [] })),
    };
  });
}

export function intents(count, seed = 3) {
  const draw = new Draw(seed);
  return Array.from({ length: count }, () => `please ${draw.of(VERBS)} the ${sentence(draw, 5 + draw.below(15))}`);
}
