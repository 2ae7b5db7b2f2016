import { type DocPage, type DocSection, plainText } from "./doc-pages.ts";

/** A page that a search found, with the section that fits best. */
export interface DocHit {
  readonly page: DocPage;
  readonly section: DocSection;
  readonly score: number;
}

/** Words that are in most questions, and say nothing about them. */
const STOP_WORDS = new Set(
  "a an and any are as at be by can do does for from get have how i if in into is it its me my not of on one or so that the their them there this to use want was what when where which who why will with without you your skein".split(
    " ",
  ),
);

/** The weight of an occurrence: in the title, the description or the heading, in the glossary's terms for the section, or in the text. */
const WEIGHTS = { title: 6, about: 4, heading: 6, term: 30, text: 1 } as const;
/** Pages about Skein itself instead of its use. */
const INNER_PAGES = /^(?:threat-model|architecture|benchmarks|glossary)$/;
const INNER_WEIGHT = 0.5;
/** Further occurrences in one section count less and less. */
const SATURATION = 4;
/** About how long a section may be before its length counts against it. */
const LENGTH_TYPICAL = 250;

/** A section of a page, with the weight of each of its words. */
export interface IndexedSection {
  readonly page: DocPage;
  readonly section: DocSection;
  readonly weights: ReadonlyMap<string, number>;
  /** The number of words that count. */
  readonly length: number;
}

/** Counts the words of all sections, for `searchDocs`. */
export function indexDocs(pages: readonly DocPage[]): readonly IndexedSection[] {
  // A table of contents has the words of all pages, and answers nothing.
  const answering = pages.filter(({ name }) => !/(?:^|\/)README$/.test(name));
  const terms = termsOf(pages.find(({ name }) => name === "glossary"));
  return answering.flatMap((page) =>
    page.sections.map((section) => {
      const synonyms = terms.get(`${page.name}#${section.anchor}`) ?? "";
      return { page, section, ...countWords(page, section, synonyms) };
    }),
  );
}

/**
 * The pages that answer a question best, the best first. Each word of the question counts by how rare it is; a page is left out if it has
 * less than half of the words.
 */
export function searchDocs(indexed: readonly IndexedSection[], question: string, hitsMax: number): readonly DocHit[] {
  const words = [...new Set(wordsOf(question))];
  const rarity = new Map(
    words.flatMap((word) => {
      const found = indexed.filter(({ weights }) => weights.has(word)).length;
      // A word that no page has would only hide the pages that have the others.
      return found === 0 ? [] : [[word, Math.log(1 + (indexed.length - found + 0.5) / (found + 0.5))] as const];
    }),
  );
  const whole = [...rarity.values()].reduce((sum, each) => sum + each, 0);
  const best = new Map<DocPage, DocHit>();
  for (const { page, section, weights, length } of indexed) {
    let score = 0;
    let covered = 0;
    for (const [word, rare] of rarity) {
      const weight = weights.get(word) ?? 0;
      if (weight === 0) continue;
      covered += rare;
      score += (rare * weight * (SATURATION + 1)) / (weight + SATURATION * (0.5 + 0.5 * (length / LENGTH_TYPICAL)));
    }
    const share = whole === 0 ? 0 : covered / whole;
    if (share < 0.5) continue;
    score *= share * share * (INNER_PAGES.test(page.name) ? INNER_WEIGHT : 1);
    if (score > (best.get(page)?.score ?? 0)) best.set(page, { page, section, score });
  }
  return [...best.values()].sort((a, b) => b.score - a.score).slice(0, hitsMax);
}

/** The terms of other libraries in the glossary, by the page and the section that explains the thing, as `guides/runs#approvals`. */
function termsOf(glossary: DocPage | undefined): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { text } of glossary?.sections ?? []) {
    for (const [, terms = "", links = ""] of text.matchAll(/^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$/gm)) {
      for (const [, page = "", anchor = ""] of links.matchAll(/\]\(([\w/-]+)\.md(?:#([\w-]+))?\)/g)) {
        const key = `${page}#${anchor}`;
        found.set(key, `${found.get(key) ?? ""} ${terms}`);
      }
    }
  }
  return found;
}

function countWords(page: DocPage, section: DocSection, terms: string): Pick<IndexedSection, "weights" | "length"> {
  const weights = new Map<string, number>();
  const add = (text: string, weight: number) => {
    const words = wordsOf(text);
    for (const word of words) weights.set(word, (weights.get(word) ?? 0) + weight);
    return words.length;
  };
  add(page.title, section.anchor === "" ? WEIGHTS.title : WEIGHTS.title / 2);
  add(page.about, section.anchor === "" ? WEIGHTS.about : WEIGHTS.about / 4);
  add(section.heading, WEIGHTS.heading);
  add(terms, WEIGHTS.term);
  const length = add(plainText(section.text), WEIGHTS.text);
  return { weights, length };
}

/** The words of a text that count, without the endings that English gives them. */
function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+(?:[.-][\p{L}\p{N}_]+)*/gu) ?? [];
  // `next.js` and `hand-over` are found as a whole and by their parts.
  const parts = words.flatMap((word) => (/[.-]/.test(word) ? [word, ...word.split(/[.-]/)] : [word]));
  return parts.filter((word) => !STOP_WORDS.has(word)).map(stemOf);
}

function stemOf(word: string): string {
  if (word.length < 5) return word.length === 4 && /[^s]s$/.test(word) ? word.slice(0, -1) : word;
  const stem = word
    .replace(/(?:ies|ied)$/, "y")
    .replace(/(?<=[^s])s$/, "")
    .replace(/(?:ations?|ing|ion|ed|ment|er|ly)$/, "");
  return (stem.length < 3 ? word : stem).replace(/(.)\1$/, "$1").replace(/[ey]$/, "");
}
