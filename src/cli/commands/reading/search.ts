import type { SessionQuery } from "../../../session/store.ts";
import type { SessionStatus } from "../../../index.ts";
import { summaryOf } from "../../../session/listing.ts";
import { type Command, type CommandValues, textOption, textsOption } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";
import { printable } from "../../terminal.ts";
import { rowOf, STATUS_OPTION } from "./list.ts";

/** Finds sessions by what was said in them. */
export const search: Command = {
  name: "search",
  summary: "Find sessions by what was said in them.",
  details:
    'Every term must occur: words, "exact phrases" in quotes (which the shell must leave there), or re: and a regular expression.',
  arguments: [{ name: "text", repeated: true, what: "what to look for" }],
  options: {
    user: { value: "ID", what: "only sessions of this user" },
    status: STATUS_OPTION,
    limit: { value: "N", default: "20", what: "how many sessions" },
  },
  examples: [
    { line: "skein search refund late", what: "sessions that speak of both" },
    { line: `skein search '"order 4711"' --json`, what: "sessions with exactly these words, for a program" },
  ],
  json: {
    hits: "the sessions that match: session (as in list) and matches, each with entryId, seq and the text around it",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    await using store = await context.openStore();
    const hits = await store.search(context.positionals.join(" "), queryOf(context.values));
    if (context.json) {
      context.printJson({ hits: hits.map(({ head, matches }) => ({ session: summaryOf(head), matches })) });
      return 0;
    }
    const { terminal } = context;
    for (const { head, matches } of hits) {
      const [id = "", ...rest] = rowOf(head);
      terminal.line(`${terminal.bold(id)}  ${rest.join("  ")}`);
      for (const { entryId, text } of matches)
        terminal.line(`  ${terminal.dim(printable(entryId, 512))}  ${printable(text, 200)}`);
    }
    if (hits.length === 0) context.fail("No session says that.");
    return 0;
  },
};

function queryOf(values: CommandValues): SessionQuery {
  const [userId, limit] = [textOption(values, "user"), countOption(values, "limit")];
  const status = textsOption(values, "status") as readonly SessionStatus[];
  return {
    ...(userId !== undefined && { userId }),
    ...(limit !== undefined && { limit }),
    ...(status.length > 0 && { status }),
  };
}
