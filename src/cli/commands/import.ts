import { counted } from "../counted.ts";
import { createReadStream } from "node:fs";
import { importSession, readLines } from "../../export/index.ts";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type Command, textOption } from "../command.ts";

/** Takes in a session from a file. */
export const importCommand: Command = {
  name: "import",
  summary: "Take in a session from a JSONL export or a session's file; all of it, or nothing.",
  details:
    "What comes in is words: what the file approved, was running or left waiting does not count, and neither does where its tools acted. --trust is for moving sessions between stores of your own, never for a file that someone else may have written.",
  arguments: [{ name: "file", what: "the file, or - for the standard input" }],
  options: {
    user: { value: "ID", what: "whose session it becomes (default: as in the file)" },
    id: { value: "ID", what: "its id in this store (default: as in the file)" },
    trust: {
      what: "take the log as your own: its approvals count, its runs can go on, its tools act where it says",
    },
  },
  examples: [
    { line: "skein import talk.jsonl", what: "a session that was exported elsewhere" },
    { line: "skein import talk.jsonl --trust", what: "one of your own, to go on with where it stopped" },
    { line: "skein import talk.jsonl --id talk-2", what: "beside the session that it was exported from" },
  ],
  json: {
    session: "the id of the session",
    version: "how many entries it has",
  },
  store: "made",
  async run(context) {
    const file = context.positionals[0] as string;
    const [userId, id] = [textOption(context.values, "user"), textOption(context.values, "id")];
    const trust = context.values["trust"] === true;
    await using store = await context.openStore();
    const { header, version } = await importSession(store, readLines(bytesOf(file, context.signal)), {
      ...(userId === undefined ? {} : { userId }),
      ...(id === undefined ? {} : { id }),
      trust,
    });
    if (context.json) context.printJson({ session: header.id, version });
    else {
      context.print(`Session ${header.id} has been imported with ${counted(version, "entry", "entries")}.`);
      if (!trust) {
        context.print(
          "It was imported as words: what it approved or was running does not count; --trust takes it as your own.",
        );
      }
    }
    return 0;
  },
};

async function* bytesOf(file: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const piece of file === "-" ? process.stdin : createReadStream(file)) {
      signal.throwIfAborted();
      yield piece as Uint8Array;
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (cause instanceof SessionError || code === undefined) throw cause;
    throw new SessionError("INVALID_OPTION", `${show(file)} cannot be read (${code}); check the path.`, { cause });
  }
}
