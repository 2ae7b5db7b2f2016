import { composeAnswer } from "./answer.ts";
import type { SessionScope } from "./session-scope.ts";

/** Writes a session for another program. It must not start the program. */
export type HandOff = (
  sessionId: string,
  target: { readonly program: string; readonly directory?: string | undefined },
) => Promise<WrittenHandoff>;

/** A session that was written for another program. */
export interface WrittenHandoff {
  readonly path: string;
  readonly cwd: string;
  /** The command lines that continue it; nothing runs them here. */
  readonly commands: readonly (readonly string[])[];
}

/** Limits on what a caller stores; a server counts here, a program has none. */
export interface StorageAccount {
  /** Called before a fork. @throws if there is no room. */
  beforeFork(): Promise<void>;
  afterFork(sessionId: string): Promise<void>;
  /** Called before a label is appended. @throws if there is no room. */
  beforeLabel(bytes: number): Promise<void>;
}

/** Creates a session that begins with the entries of another. */
export async function forkSession(
  scope: SessionScope,
  account: StorageAccount | null,
  {
    session,
    entry,
    branch = "fork",
  }: { readonly session: string; readonly entry?: string | undefined; readonly branch?: string | undefined },
): Promise<string> {
  const { header } = await scope.head(session);
  await account?.beforeFork();
  const { sessionId, version } = await scope.manager.fork(header.id, branch, {
    ...scope.as,
    turns: false,
    counted: account !== null,
    ...(entry !== undefined && { at: entry }),
  });
  await account?.afterFork(sessionId);
  return composeAnswer((answer) =>
    answer.end(
      `Session ${JSON.stringify(sessionId)} was created. It begins with ${version} entries of session ${answer.value(header.id, 512)}.`,
    ),
  );
}

/** Labels an entry, or removes its label. */
export async function labelEntry(
  scope: SessionScope,
  account: StorageAccount | null,
  { session, entry, label }: { readonly session: string; readonly entry: string; readonly label: string },
): Promise<string> {
  const { header } = await scope.head(session);
  await account?.beforeLabel(label.length);
  const tree = await scope.manager.open(header.id, { ...scope.as, resume: false });
  await tree.setLabel(entry, label === "" ? null : label);
  return composeAnswer((answer) =>
    answer.end(
      label === ""
        ? `Entry ${answer.value(entry, 512)} has no label.`
        : `Entry ${answer.value(entry, 512)} is labelled ${answer.value(label)}.`,
    ),
  );
}

/** Writes a session where another program finds it. */
export async function handOffSession(
  scope: SessionScope,
  handOff: HandOff,
  {
    session,
    program,
    directory,
  }: { readonly session: string; readonly program: string; readonly directory?: string | undefined },
): Promise<string> {
  const { header } = await scope.head(session);
  const { path, cwd, commands } = await handOff(header.id, { program, directory });
  return composeAnswer((answer) => {
    answer.add(`The session was written to ${answer.value(path, 1000)}. No program was started.`);
    if (commands.length > 0) answer.add(`In the directory ${answer.value(cwd, 1000)}, these commands continue it:`);
    for (const command of commands) answer.add(command.map((word) => answer.value(word, 1000)).join(" "));
    return answer.end("Tell the user how to continue; do not run the commands yourself.");
  });
}
