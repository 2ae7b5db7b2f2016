import { z } from "zod";
import { AppendMerge } from "../../../lifecycle/merge/append-merge.ts";
import type { MergeConflict, MergeStrategy, SkippedTurn } from "../../../lifecycle/merge/merge-strategy.ts";
import { SelectiveMerge } from "../../../lifecycle/merge/selective-merge.ts";
import { SummaryMerge } from "../../../lifecycle/merge/summary-merge.ts";
import { type SessionHead, EMPTY_PATH, type PathSummary } from "../../../session/log/fold.ts";
import type { SessionQuery, SessionStore } from "../../../session/store.ts";
import { pathAt, walkUp } from "../../../tree/path-reader.ts";
import { encodeSegment } from "../../path-segment.ts";
import type { ComparedPath, ComparisonView } from "../../tree-wire.ts";
import type { ForkRequest, MergeRequest, MergeView } from "../../wire.ts";
import { checkRight } from "../gate/authenticator.ts";
import { PathWindow } from "../../../tree/path-page.ts";
import { WHOLE_CHARACTERS_MAX } from "./answer-bytes.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { id, json, limit, list, type Loose, named, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { listedViews, modelFor, readView, visibleHead } from "./session-access.ts";
import { entry } from "./entry-schemas.ts";
import { sessionPage, sessionState, sessionView, settings } from "./wire-schemas.ts";
import type { Entry } from "../../../session/log/entry.ts";

const text = z.string();
const TURNS_MAX = 10_000;
const COMPARED_DEFAULT = 100;

const forkRequest = named<ForkRequest>(
  "ForkRequest",
  z.strictObject({ branchName: id, at: id.nullable().optional(), fromCheckpoint: id.optional() }),
);

const mergeRequest = named<MergeRequest>(
  "MergeRequest",
  z.strictObject({
    branchId: id,
    strategy: z.enum(["append", "selective", "summary"]).optional(),
    turnIds: list(text, TURNS_MAX).optional(),
    model: text.optional(),
    dryRun: z.boolean().optional(),
  }),
);

const skippedTurn = named<SkippedTurn>(
  "SkippedTurn",
  z.object({ turnId: text, reason: z.enum(["present", "unknown", "torn"]) }),
);

const mergeConflict = named<MergeConflict>(
  "MergeConflict",
  // A side without a value is left out of the JSON.
  z.object({
    key: text,
    parent: json.optional(),
    branch: json.optional(),
    base: json.optional(),
  }) as unknown as z.ZodType<Loose<MergeConflict>>,
);

const mergeView = named<MergeView>(
  "Merge",
  z.object({
    state: sessionState,
    appended: z.array(text),
    skipped: z.array(skippedTurn),
    conflicts: z.array(mergeConflict),
  }),
);

const comparedPath = named<ComparedPath>(
  "ComparedPath",
  z.object({ items: z.array(entry), more: z.boolean(), turns: z.int(), settings }),
);
const comparison = named<ComparisonView>(
  "Comparison",
  z.object({ ancestorId: text.nullable(), commonTurns: z.int(), left: comparedPath, right: comparedPath }),
);

/** Adds the routes that fork, compare and merge sessions. */
export function mountBranches(app: ServerApp, services: ServerServices): void {
  mountForks(app, services);
  mountComparing(app, services);
  mountMerges(app, services);
}

function mountForks(app: ServerApp, services: ServerServices): void {
  const { manager } = services;
  route(app, {
    method: "post",
    path: "/api/sessions/:id/forks",
    operationId: "forkSession",
    summary: "Forks a session: the new one begins with its entries, up to an entry or a checkpoint if one is named.",
    body: forkRequest,
    heavy: true,
    answers: { 201: { description: "The new session.", schema: sessionView } },
    async handle({ param, body: { branchName, ...from }, caller, as }) {
      await services.storage.addSession(caller.userId);
      const { sessionId } = await manager.fork(param("id"), branchName, {
        ...from,
        ...as,
        turns: false,
        counted: true,
      });
      await services.storage.addLog(caller.userId, sessionId);
      const headers = { location: `/api/sessions/${encodeSegment(sessionId)}` };
      return answer(await readView(services, sessionId, caller), { status: 201, headers });
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/forks",
    operationId: "listForks",
    summary: "A page of the session's forks.",
    query: z.strictObject({ limit: limit.optional(), cursor: text.optional() }),
    answers: { 200: { description: "The page.", schema: sessionPage } },
    async handle({ param, query, caller, as }) {
      const { header } = await visibleHead(services, param("id"), caller);
      const { items, next } = await manager.list({ ...(query as SessionQuery), parentId: header.id }, as);
      return answer({ items: await listedViews(services, items), next });
    },
  });
}

function mountComparing(app: ServerApp, services: ServerServices): void {
  const { store } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id/comparison",
    operationId: "comparePaths",
    summary:
      "Compares two paths of one or two sessions: their last common entry, and the first entries of each after it.",
    query: z.strictObject({
      leafId: id.optional(),
      with: id.optional(),
      withLeafId: id.optional(),
      limit: limit.optional(),
    }),
    answers: { 200: { description: "The comparison.", schema: comparison } },
    async handle({ param, query, caller }) {
      const endOf = async (sessionId: string, given: string | undefined): Promise<PathEnd> => {
        const head = await visibleHead(services, sessionId, caller);
        const leafId = given ?? head.leafId;
        return { sessionId: head.header.id, leafId, path: await pathAt(store, head, leafId) };
      };
      const left = await endOf(param("id"), query.leafId);
      const right = await endOf(query.with ?? param("id"), query.withLeafId);
      return answer(await comparePaths(store, left, right, query.limit ?? COMPARED_DEFAULT));
    },
  });
}

function mountMerges(app: ServerApp, services: ServerServices): void {
  const { manager } = services;
  route(app, {
    method: "post",
    path: "/api/sessions/:id/merges",
    operationId: "mergeBranch",
    summary: "Merges the turns that a fork added into this session; with `dryRun`, only previews the merge.",
    body: mergeRequest,
    heavy: true,
    problems: [502],
    answers: { 200: { description: "The result of the merge; its state has no turns.", schema: mergeView } },
    async handle({ param, body, caller, as, signal }) {
      // A dry run also calls the model to write its summary.
      if (body.strategy === "summary") checkRight(caller, "run");
      const head = await visibleHead(services, param("id"), caller);
      const { state, appended, skipped, conflicts } = await manager.merge(head.header.id, body.branchId, {
        ...as,
        turns: false,
        strategy: await strategyOf(services, body, head, signal),
        dryRun: body.dryRun ?? false,
        charactersMax: WHOLE_CHARACTERS_MAX,
      });
      if (head.header.userId === caller.userId) await services.storage.addLog(caller.userId, head.header.id);
      return answer({ state, appended: appended.map((draft) => draft.id), skipped, conflicts });
    },
  });
}

async function strategyOf(
  services: ServerServices,
  { strategy = "append", turnIds, model }: MergeRequest,
  head: SessionHead,
  signal: AbortSignal,
): Promise<MergeStrategy> {
  if (turnIds !== undefined && strategy !== "selective")
    refuse("body.turnIds", "Only a selective merge accepts turns.");
  if (model !== undefined && strategy !== "summary") refuse("body.model", "Only a summary merge accepts a model.");
  if (strategy === "append") return new AppendMerge();
  if (strategy === "summary") return new SummaryMerge({ model: await modelFor(services, model, head), signal });
  return new SelectiveMerge(turnIds ?? refuse("body.turnIds", "A selective merge needs the ids of the turns."));
}

/** One of two paths to compare: its end and its summary. */
interface PathEnd {
  readonly sessionId: string;
  readonly leafId: string | null;
  readonly path: PathSummary;
}

interface Climb {
  readonly steps: AsyncIterator<Entry, unknown>;
  /** The depth of `at`. */
  depth: number;
  at: Entry | null;
  /** The last visited nodes on the two walks up to the common entry. */
  readonly window: PathWindow;
}

/**
 * Finds the last common entry of two paths, in one session or in two: a fork keeps the ids of inherited entries. Walks up both
 * paths to that entry, and keeps only the first `limit` entries after it in memory.
 */
async function comparePaths(
  store: SessionStore,
  left: PathEnd,
  right: PathEnd,
  limit: number,
): Promise<ComparisonView> {
  const [a, b] = [climbFrom(store, left, limit), climbFrom(store, right, limit)];
  const up = async (climb: Climb): Promise<void> => {
    if (climb.at !== null) climb.window.add(climb.at);
    const { value, done } = await climb.steps.next();
    climb.at = done === true ? null : (value as Entry);
    climb.depth -= 1;
  };
  await up(a);
  await up(b);
  while (a.at?.id !== b.at?.id) {
    const [ofA, ofB] = [a.depth, b.depth];
    if (ofA >= ofB) await up(a);
    if (ofB >= ofA) await up(b);
  }
  const ancestorId = a.at?.id ?? null;
  const common = (ancestorId === null ? null : await store.path(left.sessionId, ancestorId)) ?? EMPTY_PATH;
  const sideOf = async ({ sessionId, path }: PathEnd, { window }: Climb): Promise<ComparedPath> => ({
    ...window.page(),
    turns: path.turnCount - common.turnCount,
    settings: await store.settings(sessionId, path),
  });
  return { ancestorId, commonTurns: common.turnCount, left: await sideOf(left, a), right: await sideOf(right, b) };
}

function climbFrom(store: SessionStore, { sessionId, leafId, path }: PathEnd, limit: number): Climb {
  const steps = leafId === null ? noEntries() : walkUp(store, sessionId, leafId);
  return { steps, depth: path.depth + 1, at: null, window: new PathWindow(limit) };
}

async function* noEntries(): AsyncGenerator<Entry, void, undefined> {}
