import { cpus, loadavg } from "node:os";
import type { BenchOptions } from "./bench-options.ts";
import { formatCount, formatRatio } from "./format.ts";
import { MESSAGE_CHARACTERS } from "./message-of.ts";
import { peers } from "./peers/peers.ts";
import { installationOf } from "./peers/load-installed.ts";
import { renderReading } from "./render-reading.ts";
import type { Row } from "./row.ts";
import { serverPeers } from "./servers/server-peers.ts";
import type { Sizes } from "./sizes.ts";

/** Renders the page docs/benchmarks.md. */
export function renderReport(rows: readonly Row[], sizes: Sizes, options: BenchOptions): string {
  return `# Benchmarks

Written by the run itself; do not edit. Run it again with:

\`\`\`sh
npm run bench -- --write${options.quick ? " --quick" : ""} [--only <section>,…]
\`\`\`
${options.quick ? "\n**This is a quick run: its sizes are too small to say anything about speed.**\n" : ""}
${renderSetting(sizes)}

## How to read it

- All of a section was measured in one run; \`--only\` replaces the rows of its sections and keeps the others. Contenders
  take alternating rounds, times are medians of the rounds, and a ratio is the median of the rounds' own ratios, so that a
  busy machine shifts both sides and not the ratio; rows about budgets compare means. Each section is measured in a process of its own, so that none pays
  for what another has left.
- For speeds the ratio is the share of the raw limit's speed (more is better); everywhere else it is measured by
  compared (less is better).
- Bytes written are what the process gave to write calls, rewritten bytes included (\`wchar\` of \`/proc/self/io\`); for
  SQLite that counts the write-ahead log and the checkpoint. "Growth of all files" is the size on disk after closing.
- Bytes read are what read calls returned, from the page cache or from the disk (\`rchar\`).
- A turn in the section "peers" is a user message and a reply. Each peer runs in a process of its own.
- The section "checks" compares requests with those of an earlier build where one is named: \`--against <revision>\` builds it with
  the packages of this tree. Both servers let in one user with a token; each is measured by its time for a request.
- The sections "postgres" and "redis" use servers on this machine that were started for the run, unless others were named
  to it, with the settings that they come with: PostgreSQL waits for the disk with each commit, Redis does not. An append
  there is the store's \`append\` of one message. Long sessions are made with 1,000 entries in an append, and sessions for
  listings with 64 creations at once.
- Bytes of a turn there are what PostgreSQL wrote to its write-ahead log, and the memory that Redis took.
- The section "fleet" asks for all runs at once, as a server does; the times are those in the log of each session, and memory is the
  most that a worker has had resident beyond what it had before, by the most runs that were with its model at once. What the
  queue adds is from a notification to the model, less what a claim without one takes to get there.
- The section "scale" counts what a server holds: tables with their indexes after \`VACUUM FULL\`, or keys by \`MEMORY USAGE\`. What
  it adds up to is in [scale](scale.md).
- The section "studio" drives Chromium, without a GPU and in a window of 1280 by 800 pixels, against a server in a process of
  its own; each opening is in a tab with an empty cache. Its sessions have Markdown, tool calls, an answer of twenty thousand
  characters in every hundred turns, and a branch of six nodes for every forty. Of a tree, long runs without branches are
  folded, as the studio shows it.
- A gap there is a stretch of at least 24 pixels of the transcript's view in which no row is drawn: because there is none,
  because earlier turns are still being loaded, or because the row has nothing in it yet. Every frame is looked at when its
  layout is done; whether the graphics of the machine put it on the screen in time is not seen. A frame's time is from one to
  the next, so that 16.7 ms means that none was late.

## Results

${renderTable(rows)}

${renderReading(rows)}

${renderPeers()}`;
}

function renderSetting(sizes: Sizes): string {
  const load = loadavg()[2] ?? 0;
  return [
    `- Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cpus().length} processors; on average ` +
      `${load.toFixed(1)} programs wanted one in the last 15 minutes, the benchmark included. More than there are ` +
      "processors means that times are longer than they would be on an idle machine.",
    `- Messages of ${MESSAGE_CHARACTERS} characters; sessions of ${formatCount(sizes.entriesSmall)}, ` +
      `${formatCount(sizes.entriesMedium)} and ${formatCount(sizes.entriesLarge)} entries that end with a compaction ` +
      `which keeps ${formatCount(sizes.entriesKept)}; ${formatCount(sizes.sessions)} sessions for the listings, on servers ` +
      `also ${formatCount(sizes.sessionsMany)}, ${formatCount(sizes.sessionsOfUser)} of each user.`,
    `- ${sizes.rounds} rounds of ${formatCount(sizes.appends)} appends (${sizes.appendsSynced} where each waits for the ` +
      `disk); conversations of ${formatCount(sizes.turnsSmall)} and ${formatCount(sizes.turnsLarge)} turns.`,
  ].join("\n");
}

function renderPeers(): string {
  const all = [...peers, ...serverPeers];
  const names = [...new Set(all.map(({ installation }) => installation).filter((name) => name !== null))];
  const installed = names.map((name) => {
    const { packages, problem } = installationOf(name);
    const versions = Object.entries(packages).map(([module, version]) => `\`${module}\` ${version}`);
    return `- ${name}: ${problem === null ? versions.join(", ") : `not installed: ${problem}`}.`;
  });
  const notes = all.flatMap(({ label, note }) => (note === undefined ? [] : [`- ${label}: ${note}`]));
  return `## Peers

Installed for the benchmark only, in exactly these versions; they are no dependency of skein.

${installed.join("\n")}

${notes.join("\n")}
`;
}

const HEADINGS = ["section", "what", "measured", "compared with", "ratio", "target", "result"];

/** The rows as one Markdown table. */
export function renderTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => [
    row.section,
    row.what,
    row.measured,
    row.against ?? "–",
    row.ratio === undefined ? "–" : formatRatio(row.ratio),
    row.target?.text ?? "–",
    row.target === undefined ? "–" : row.target.met ? "pass" : "FAIL",
  ]);
  return [HEADINGS, HEADINGS.map(() => "---"), ...lines]
    .map((cells) => `| ${cells.map(escaped).join(" | ")} |`)
    .join("\n");
}

/** Parses the rows of a page that `renderReport` wrote. */
export function readTable(page: string): Row[] {
  const lines = page.split("\n").filter((line) => line.startsWith("| "));
  return lines.slice(2).map((line) => {
    const [section = "", what = "", measured = "", against = "–", ratio = "–", text = "–", result] = line
      .slice(2, -2)
      .split(" | ")
      .map((cell) => cell.replaceAll("\\|", "|"));
    return {
      ...{ section, what, measured },
      ...(against === "–" ? {} : { against }),
      ...(ratio === "–" ? {} : { ratio: Number(ratio.replaceAll(",", "")) }),
      ...(text === "–" ? {} : { target: { text, met: result === "pass" } }),
    };
  });
}

function escaped(cell: string): string {
  return cell.replaceAll("|", "\\|");
}
