/** Words that say nothing about which tool is meant. They are compared before stemming, in lower case. */
const ENGLISH = `
a about above after again all also am an and any are aren as at be because been before being below between both but by can cannot
could couldn did didn do does doesn doing don down during each few for from further had hadn has hasn have haven having he her here
hers herself him himself his how i if in into is isn it its itself just ll m me more most my myself no nor not now of off on once only
or other our ours ourselves out over own re s same shan she should shouldn so some such t than that the their theirs them themselves
then there these they this those through to too under until up ve very was wasn we were weren what when where which while who whom
why will with won would wouldn you your yours yourself yourselves
please help want need like know looking look let us tell show give get able could may might must shall
hi hello thanks thank okay ok sure etc via using use used
interested possible specific specifically various certain particular particularly additionally furthermore moreover finally therefore
however instead already yet ever even still really much many lot lots something anything everything someone thing things
say says said saying see seeing going gone goes go getting got came come comes made obtain appreciate appreciated curious wondering
wanted wants needed needs necessary well great good nice helpful amazing wonderful assist assistance
per among along upon within without yes no
`;

/**
 * Words that describe a wish more often than the tool for it: courtesy, quality, dates and places in time. They count, but
 * little.
 */
const FAINT_ENGLISH = `
find finding found provide provides provided providing recommend recommended recommending recommendation recommendations suggest
suggestions suggestion ensure including include includes included relevant related detailed details detail comprehensive overview
unique best better high higher quality new latest recent recently current currently available upcoming easy quick quickly immediate
understand understanding think thinking try trying ask asking call called take taking make making wish hope explore exploring gather
gathering consider considering according based given one two three four five six seven eight nine ten first second third next last
example examples today tomorrow tonight yesterday morning afternoon evening night week weekend day monday tuesday wednesday thursday
friday saturday sunday january february march april june july august september october november december am pm st nd rd th
information friend friends family company
`;

/** Single signs, and pairs of them, that carry grammar or courtesy in Chinese. */
const CHINESE_SIGNS = "的了吗呢吧啊呀嘛么是在有和与及或也都就还而且我你您他她它们这那个些请能会要想让给帮把被为对从到将并之于以其";
const CHINESE_PAIRS = `
一下 一个 一些 一份 一款 一种 可以 能否 能够 是否 需要 想要 希望 帮我 帮助 帮忙 请问 请帮 请你 请给 告诉 谢谢 您好 你好 好的 没有 什么 怎么 如何
哪些 哪个 这个 那个 这些 那些 我们 你们 他们 我的 你的 您的 它的 他的 以及 或者 并且 如果 因为 所以 但是 关于 对于 根据 通过 进行 使用 提供 最近 现在
想知 知道 我想 我要 我需 我在 我正 正在 能不 不能 请为 为我 给我 了解 想了
`;

const WORDS: ReadonlySet<string> = new Set(ENGLISH.split(/\s+/).filter((word) => word !== ""));
const FAINT: ReadonlySet<string> = new Set(FAINT_ENGLISH.split(/\s+/).filter((word) => word !== ""));
const SIGNS: ReadonlySet<string> = new Set(CHINESE_SIGNS);
const PAIRS: ReadonlySet<string> = new Set(CHINESE_PAIRS.split(/\s+/).filter((pair) => pair !== ""));

export function isStopWord(word: string): boolean {
  return WORDS.has(word);
}

/** Numbers and single letters are values for a tool's parameters, hardly ever what it is about. */
const VALUE = /^(?:[0-9]+|[a-z])$/;

export function isFaint(word: string): boolean {
  return FAINT.has(word) || VALUE.test(word);
}

export function isStopSign(sign: string): boolean {
  return SIGNS.has(sign);
}

/** A pair of signs; two signs that say nothing say nothing together either. */
export function isStopPair(first: string, second: string): boolean {
  return PAIRS.has(first + second) || (SIGNS.has(first) && SIGNS.has(second));
}
