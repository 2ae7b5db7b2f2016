import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { goldenText } from "../formats/foreign-samples.ts";
import { removeAll } from "../remove-tree.ts";

/** A home directory with sessions of other programs, for the environment of a program. */
export interface ForeignHome {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Creates a home with two sessions of pi, one of Codex and a database of opencode, and makes it this process's own until the test ends.
 * With `unreadable`, the files hold no session of any program; with `empty`, there are none.
 */
export async function foreignHome({ unreadable = false, empty = false } = {}): Promise<ForeignHome> {
  const directory = await mkdtemp(join(tmpdir(), "skein-foreign-"));
  const environment = {
    ...foreignEnvironment(directory),
    HOME: directory,
    SKEIN_HOME: join(directory, "skein"),
    SKEIN_STORE: "",
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await removeAll(directory);
  });
  if (!empty) await writeForeignSessions(directory, unreadable ? "no session" : null);
  return { directory, environment };
}

/** The variables that make other programs' homes lie in a directory. */
export function foreignEnvironment(directory: string): Readonly<Record<string, string>> {
  return {
    CLAUDE_CONFIG_DIR: join(directory, "claude"),
    CODEX_HOME: join(directory, "codex"),
    PI_CODING_AGENT_SESSION_DIR: "",
    PI_CODING_AGENT_DIR: join(directory, "pi"),
    XDG_DATA_HOME: join(directory, "data"),
    OPENRATH_HOME: join(directory, "openrath"),
  };
}

/** Writes two sessions of pi, one of Codex and a database of opencode; `text` replaces what is in them. */
export async function writeForeignSessions(directory: string, text: string | null = null): Promise<void> {
  const files: Readonly<Record<string, string>> = {
    "pi/sessions/--srv-shop--/one.jsonl": goldenText("pi-0.73.1.jsonl"),
    "pi/sessions/--srv-shop--/two.jsonl": goldenText("pi-0.87.1-conversation.jsonl"),
    "pi/sessions/--srv-shop--/notes.txt": "not a session",
    "codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-x.jsonl": goldenText("codex-0.166.0-conversation.jsonl"),
    "data/opencode/opencode.db": "SQLite format 3",
  };
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text ?? content);
  }
}
