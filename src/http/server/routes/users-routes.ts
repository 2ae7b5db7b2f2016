import { z } from "zod";
import type { EraseReport } from "../../../lifecycle/erase/erase-report.ts";
import { removeUserDirectory } from "../../../workers/user-places.ts";
import type { BudgetView } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import { answer, answerStream, route, type ServerApp } from "../route.ts";
import { named, queryFlag } from "../schema.ts";
import type { Caller, ServerServices } from "../server-services.ts";

const eraseReport = named<EraseReport>(
  "EraseReport",
  z.object({
    sessions: z.number(),
    entries: z.number(),
    checkpoints: z.number(),
    snapshots: z.number(),
    blobs: z.number(),
    keptByForks: z.array(z.object({ sessionId: z.string(), forkId: z.string(), userId: z.string().nullable() })),
    notCovered: z.array(
      z.object({ sessionId: z.string(), reason: z.enum(["words-of-others", "snapshot", "blobs"]), count: z.number() }),
    ),
  }),
);

const budgetView = named<BudgetView>(
  "BudgetView",
  z.object({
    userId: z.string(),
    levels: z.array(
      z.object({
        window: z.string(),
        unit: z.enum(["totalTokens", "cost"]),
        limit: z.number(),
        spent: z.number(),
        reserved: z.number(),
        warnAt: z.number().nullable(),
        movesOnAt: z.string().nullable(),
      }),
    ),
  }),
);

/** Adds the routes of a user's data: erasing and exporting it, and the user's budget. */
export function mountUsers(app: ServerApp, { manager, placeOf }: ServerServices): void {
  route(app, {
    method: "delete",
    path: "/api/users/:userId",
    operationId: "eraseUser",
    summary:
      "Erases everything of a user for good, also in deleted sessions and in sessions of others; with `dryRun`, only reports it. For administrators. A repeated request continues an interrupted erasure.",
    query: z.strictObject({ dryRun: queryFlag.optional(), forks: z.enum(["keep", "erase"]).optional() }),
    answers: {
      200: {
        description: "A report of the erased data, or with a dry run of the data that would be erased.",
        schema: eraseReport,
      },
    },
    async handle({ param, query, caller }) {
      checkAdministrator(caller);
      const userId = param("userId");
      const { dryRun = false, forks = "keep" } = query;
      // Without the request's signal: a started erasure continues if the client disconnects.
      const report = await manager.erase({ userId }, { dryRun, forks });
      if (!dryRun) await removeUserDirectory(placeOf(userId), userId);
      return answer(report);
    },
  });
  route(app, {
    method: "get",
    path: "/api/users/:userId/export",
    operationId: "exportUser",
    summary: "Everything stored about a user, as one archive; for administrators and for the user.",
    answers: { 200: { description: "The archive.", contentType: "application/x-tar" } },
    async handle({ param, caller, work }) {
      const userId = param("userId");
      if (userId !== caller.userId) checkAdministrator(caller);
      return answerStream(work, manager.exportUser(userId), {
        "content-type": "application/x-tar",
        "content-disposition": 'attachment; filename="user.tar"',
      });
    },
  });
  route(app, {
    method: "get",
    path: "/api/users/:userId/budget",
    operationId: "getBudget",
    summary:
      "How far a user has used up each limit of the budgets, which is empty without budgets; for administrators and for the user.",
    answers: { 200: { description: "The levels.", schema: budgetView } },
    async handle({ param, caller }) {
      const userId = param("userId");
      if (userId !== caller.userId) checkAdministrator(caller);
      return answer({ userId, levels: (await manager.budgets?.levels(userId)) ?? [] });
    },
  });
}

function checkAdministrator({ admin }: Caller): void {
  if (!admin) throw new HttpError("FORBIDDEN", "Only an administrator can do this for a user.");
}
