import { createHeader } from "skein";
import { chromiumMissing } from "../../scripts/chromium.mjs";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { startApp } from "../http/app-process.ts";
import { messageOf } from "../message-of.ts";
import { atMost, below, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { median } from "../statistics.ts";
import { openStoreOf } from "../store-kind.ts";
import type { Frames } from "../studio/measure-frames.ts";
import { measureOpening, type Opening } from "../studio/measure-opening.ts";
import { measureOverview } from "../studio/measure-overview.ts";
import { measureScrolling } from "../studio/measure-scrolling.ts";
import { measureTree, type TreeFrames } from "../studio/measure-tree.ts";
import { type Conversation, storeConversation } from "../studio/store-conversation.ts";
import { startBrowser } from "../studio/studio-browser.ts";

const section = "studio";
const SHOWN_MS_MAX = 1000;
const OVERVIEW_MS_MAX = 500;
const MESSAGES_EACH = 4;
const GAP_FRAMES_MAX = 1;
/** The length of the short session. */
const TURNS_FEW = 10;
const SESSIONS_FEW = 10;

/** The studio in a real browser: how fast a long session opens and scrolls, and its tree. */
export const studioSection: Section = {
  name: section,
  async run(bench) {
    const missing = chromiumMissing();
    if (missing === null) return measureStudio(bench);
    const target = { text: `< ${SHOWN_MS_MAX} ms`, met: false };
    return [{ section, what: openingOf(bench.sizes.turnsLarge), measured: `not measured: ${missing}`, target }];
  },
};

async function measureStudio({ sizes, fixtures, progress }: Bench): Promise<Row[]> {
  const folder = await fixtures.folder("studio");
  progress(`studio: making a session of ${sizes.turnsLarge} turns`);
  const { long, middle, short } = await storeSessions(folder, sizes.turnsLarge, sizes.turnsSmall);
  await using server = await startApp({ kind: "studio", folder, sessionId: "" });
  await using browser = await startBrowser(server.url);
  progress("studio: opening sessions");
  const openings = await measureOpening(browser, { long, short }, sizes.pages);
  progress("studio: scrolling");
  const steps = await measureScrolling(browser, long, { times: sizes.scrolls, deltaY: -300, pauseMs: 30 });
  const flings = await measureScrolling(browser, long, { times: sizes.scrolls, deltaY: -1500, pauseMs: 40 });
  progress("studio: the tree");
  const large = await measureTree(browser, long, sizes.scrolls);
  const small = await measureTree(browser, middle, sizes.scrolls);
  return [
    ...(await overviewRows({ sizes, fixtures, progress })),
    ...openingRows(sizes.turnsLarge, openings),
    ...scrollRows("the transcript scrolled up by 300 px every 30 ms", steps),
    ...scrollRows("the transcript flung up by 1,500 px every 40 ms", flings),
    ...treeRows({ large, nodes: long.nodes }, { small, nodes: middle.nodes }),
  ];
}

/** The first page, with many sessions in the store and with few. */
async function overviewRows({
  sizes,
  fixtures,
  progress,
}: Pick<Bench, "sizes" | "fixtures" | "progress">): Promise<Row[]> {
  const times: Record<"many" | "few", readonly number[]> = { many: [], few: [] };
  const counts = { many: sizes.sessionsSearched, few: SESSIONS_FEW };
  for (const which of ["few", "many"] as const) {
    progress(`studio: the first page with ${formatCount(counts[which])} sessions`);
    const folder = await fixtures.folder(`studio-overview-${which}`);
    await fill(folder, counts[which]);
    await using server = await startApp({ kind: "studio", folder, sessionId: "" });
    await using browser = await startBrowser(server.url);
    times[which] = await measureOverview(browser, sizes.pages);
  }
  const [shownMs, few] = [median(times.many), median(times.few)];
  return [
    {
      section,
      what: `the first page with ${formatCount(counts.many)} sessions, from the navigation until it shows the latest`,
      measured: `${formatMs(shownMs)}, best round ${formatMs(Math.min(...times.many))}`,
      against: `${formatMs(few)} with ${formatCount(counts.few)}`,
      ratio: shownMs / few,
      target: below(shownMs, OVERVIEW_MS_MAX, "ms"),
    },
  ];
}

async function fill(folder: string, sessions: number): Promise<void> {
  await using store = await openStoreOf("sqlite", folder);
  for (let session = 0; session < sessions; session++) {
    const { header } = await store.create(createHeader({ userId: "local" }));
    const messages = Array.from({ length: MESSAGES_EACH }, (_, index) => messageOf(session * MESSAGES_EACH + index));
    await store.append(
      header.id,
      messages.map((message) => ({ type: "message" as const, message })),
    );
  }
}

async function storeSessions(
  folder: string,
  turnsLarge: number,
  turnsSmall: number,
): Promise<Record<"long" | "middle" | "short", Conversation>> {
  await using store = await openStoreOf("sqlite", folder);
  return {
    long: await storeConversation(store, turnsLarge),
    middle: await storeConversation(store, turnsSmall),
    short: await storeConversation(store, TURNS_FEW),
  };
}

function openingOf(turns: number): string {
  return `a session of ${formatCount(turns)} turns, from the navigation until its last turn is in view`;
}

function openingRows(turns: number, openings: Record<"long" | "short", readonly Opening[]>): Row[] {
  const of = (which: "long" | "short", field: keyof Opening): number =>
    median(openings[which].map((opening) => opening[field]));
  const ratio = median(
    openings.long.map(({ shownMs }, round) => shownMs / (openings.short[round]?.shownMs ?? Number.NaN)),
  );
  const few = `with ${TURNS_FEW} turns`;
  const shownMs = of("long", "shownMs");
  const bytes = { long: of("long", "answerBytes"), short: of("short", "answerBytes") };
  return [
    {
      section,
      what: openingOf(turns),
      measured: `${formatMs(shownMs)}, best round ${formatMs(Math.min(...openings.long.map((opening) => opening.shownMs)))}`,
      against: `${formatMs(of("short", "shownMs"))} ${few}`,
      ratio,
      target: below(shownMs, SHOWN_MS_MAX, "ms"),
    },
    {
      section,
      what: "the same, bytes of the server's answers until then, without the program itself",
      measured: formatBytes(bytes.long),
      against: `${formatBytes(bytes.short)} ${few}`,
      ratio: bytes.long / bytes.short,
    },
  ];
}

function scrollRows(what: string, { count, slow, gaps, gapsInARow }: Frames): Row[] {
  return [
    {
      section,
      what: `${what}, the most frames in a row with a gap`,
      measured: `${gapsInARow}, ${formatCount(gaps)} of ${formatCount(count)} in all`,
      target: atMost(gapsInARow, GAP_FRAMES_MAX),
    },
    { section, what: `${what}, frames of more than 50 ms`, measured: `${slow} of ${formatCount(count)}` },
  ];
}

function treeRows(
  { large, nodes }: { readonly large: TreeFrames; readonly nodes: number },
  { small, nodes: few }: { readonly small: TreeFrames; readonly nodes: number },
): Row[] {
  const tree = `the tree of ${formatCount(nodes)} nodes`;
  const against = (text: string): string => `${text} with ${formatCount(few)} nodes`;
  const share = ({ slow, count }: Frames): string => `${slow} of ${formatCount(count)}`;
  return [
    {
      section,
      what: `${tree}, from the navigation until it is drawn`,
      measured: formatMs(large.drawnMs),
      against: against(formatMs(small.drawnMs)),
      ratio: large.drawnMs / small.drawnMs,
    },
    {
      section,
      what: `${tree} panned and zoomed, a frame`,
      measured: formatMs(large.frames.medianMs),
      against: against(formatMs(small.frames.medianMs)),
      ratio: large.frames.medianMs / small.frames.medianMs,
      target: atMost(large.frames.medianMs / small.frames.medianMs, TREE_RATIO_MAX),
    },
    {
      section,
      what: `${tree} panned and zoomed, frames of more than 50 ms`,
      measured: share(large.frames),
      against: against(share(small.frames)),
    },
    {
      section,
      what: `${tree}, from an arrow key until the next element is drawn as selected`,
      measured: formatMs(large.keyMs),
      against: against(formatMs(small.keyMs)),
      ratio: large.keyMs / small.keyMs,
    },
  ];
}

/** A tree is smooth if its frames take no longer than those of a tree that fits the window. */
const TREE_RATIO_MAX = 1.2;
