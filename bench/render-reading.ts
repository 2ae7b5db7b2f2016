import { formatRatio } from "./format.ts";
import type { Row } from "./row.ts";

/** The explanation of a row's ratio. Which of the two texts applies depends on the run. */
interface Reason {
  /** The section, if rows of several sections have this name. */
  readonly section?: string;
  readonly what: RegExp;
  /** If the ratio is below one. */
  readonly below: string;
  /** If it is one or more. */
  readonly above: string;
}

const REASONS: readonly Reason[] = [
  {
    section: "postgres",
    what: /one append/,
    below:
      "The same round trip, but the statement also finds and updates the head's row, and the row it adds holds the path to " +
      "the entry and has an index by id.",
    above: "The work around the insert is less than the noise of the insert.",
  },
  {
    section: "redis",
    what: /one append|at once/,
    below:
      "A round trip to Redis takes so little that the rest shows: the draft is checked, folded and made to text, and a " +
      "script compares the stamp and writes four things where the bare client writes one. What a client spends on a timeout " +
      "for each command, which the store's own client does not have, is the difference between the two bare ones.",
    above: "The work around the command is less than the noise of the command.",
  },
  {
    what: /^jsonl, one append/,
    below:
      "Before its one write an append is checked, copied, given its place, folded into the head and made to text, and " +
      "afterwards the file is given the time of the append; the bare loop does none of it.",
    above: "The file stays open while appends follow each other, where the bare loop opens it for each.",
  },
  {
    what: /^jsonl, an append after a pause of/,
    below:
      "After a pause the lock among processes is taken anew and the file opened and looked at; when nobody appends for a " +
      "moment, both are let go.",
    above: "Taking the lock anew and looking at the file costs no more than opening it.",
  },
  {
    what: /^jsonl, durability fsync/,
    below: "The disk takes nearly all of the time; what is left is the work of an append without fsync.",
    above: "The disk takes nearly all of the time, on both sides.",
  },
  {
    what: /^sqlite, one append/,
    below: "The draft is checked and folded, and the row also holds the path to the entry and the head after it.",
    above: "The work around the insert is less than the noise of the insert.",
  },
  {
    what: /^sqlite, the same, all garbage collected/,
    below:
      "It has no target, since no program forces a collection between appends. Compare it with the row above: what the " +
      "difference comes from is not known.",
    above: "A forced collection makes no difference.",
  },
  {
    what: /^jsonl, fork/,
    below: "A fork copies the file, because a JSONL session is one file that can be carried away.",
    above: "A fork copies the file, because a JSONL session is one file that can be carried away.",
  },
  {
    what: /^jsonl, open \+ branch/,
    below: "The first look for an old entry reads the whole log.",
    above: "The first look for an old entry reads the whole log; after it, entries are found by a map of their ids.",
  },
  {
    what: /^jsonl, list .* warm$/,
    below: "What is known of a file is kept while its size and time stay the same.",
    above: "Each file is looked at once, to see whether it changed; then the heads are sorted and copied.",
  },
  {
    what: /^jsonl, list .* new store object/,
    below: "A head is read from the index beside the file, without reading the session.",
    above: "The beginning of each file and the end of its index are read once.",
  },
  {
    what: /^jsonl, getTree .* first call/,
    below: "Every entry is read and parsed once.",
    above: "Every entry is read, parsed and frozen; after that, only new ones are.",
  },
];

/** The explanation of the table, in a few sentences. */
export function renderReading(rows: readonly Row[]): string {
  const targeted = rows.filter(({ target }) => target !== undefined);
  const missed = targeted.filter(({ target }) => target?.met === false);
  const verdict = `${targeted.length - missed.length} of ${targeted.length} targets are met.`;
  return [
    "## Reading",
    [verdict, ...missed.map(missedLine)].join("\n"),
    rows.flatMap(reasonLine).join("\n"),
    peersLine(rows),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function missedLine({ section, what, measured, ratio, target }: Row): string {
  // A target without a unit is one of the ratio.
  const isOfRatio = ratio !== undefined && /\d$/.test(target?.text ?? "");
  const found = isOfRatio ? `${measured}, a ratio of ${formatRatio(ratio)}` : measured;
  return `- Missed: ${section}, ${what}: ${found}; the target is ${target?.text}.`;
}

function reasonLine({ section, what, ratio, against }: Row): string[] {
  const reason = REASONS.find(
    (candidate) => candidate.what.test(what) && (candidate.section === undefined || candidate.section === section),
  );
  if (reason === undefined || ratio === undefined) return [];
  return [`- ${what}: ${formatRatio(ratio)} against ${against}. ${ratio < 1 ? reason.below : reason.above}`];
}

/** The growth of a turn of each peer, the steepest first. */
function peersLine(rows: readonly Row[]): string {
  const turns = rows.flatMap(({ section, what, ratio }) => {
    const name = /^(.*): time of turn/.exec(what)?.[1];
    return section !== "peers" || name === undefined || ratio === undefined ? [] : [{ name, ratio }];
  });
  if (turns.length === 0) return "";
  const growth = turns.toSorted((a, b) => b.ratio - a.ratio).map(({ name, ratio }) => `${name} ${formatRatio(ratio)}`);
  return (
    `How many times as long a late turn takes as an early one: ${growth.join("; ")}. What saves the whole history with ` +
    "every turn, or loads it before one, grows with it; what appends does not."
  );
}
