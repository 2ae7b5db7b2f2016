import type { SessionQuery } from "../../../session/store.ts";
import type { SessionStatus } from "../../../index.ts";
import { summaryOf } from "../../../session/listing.ts";
import { type Command, type CommandValues, textOption, textsOption } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";
import { printable } from "../../terminal.ts";
import { rowOf, STATUS_OPTION } from "./list.ts";

/** Finds sessions by their text. */
export const search: Command = {
  name: "search",
  summary: "Find sessions by the text of their messages.",
  details:
    'All terms must occur: words, and "exact phrases" in quotes, which must be escaped for the shell. re: makes the rest of the text a regular expression.',
  arguments: [{ name: "text", repeated: true, what: "the text to find" }],
  options: {
    user: { value: "ID", what: "only sessions of this user" },
    status: STATUS_OPTION,
    limit: { value: "N", default: "20", what: "at most this many sessions" },
  },
  examples: [
    { line: "skein search refund late", what: "sessions that contain both words" },
    { line: `skein search '"order 4711"' --json`, what: "sessions with exactly this phrase, for a program" },
  ],
  json: {
    hits: "the matching sessions: session (as in list) and matches, each with entryId, seq and the text around it",
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
    if (hits.length === 0) context.fail("No session matches.");
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
