import type { ExecResult } from "../session/sandbox/sandbox.ts";

/** The most characters of one stream that a model is shown; of a longer one the beginning and the end are kept. */
export const STREAM_CHARACTERS_MAX = 30_000;

/** The longest time that a model may give a command. */
export const TIMEOUT_PARAMETER = {
  type: "integer",
  minimum: 1,
  maximum: 3_600_000,
  description: "After how many milliseconds it is ended, with everything it started.",
} as const;

/** What a model is told that a command came to. */
export interface CommandAnswer {
  readonly exit_code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated?: true;
}

/** A command's result as a model is told it, short enough for a context. */
export function answerOf({ exitCode, stdout, stderr, truncated }: ExecResult): CommandAnswer {
  const cut = truncated || stdout.length > STREAM_CHARACTERS_MAX || stderr.length > STREAM_CHARACTERS_MAX;
  return {
    exit_code: exitCode,
    stdout: keepEnds(stdout),
    stderr: keepEnds(stderr),
    ...(cut ? { truncated: true } : {}),
  };
}

function keepEnds(text: string): string {
  if (text.length <= STREAM_CHARACTERS_MAX) return text;
  const half = STREAM_CHARACTERS_MAX / 2;
  // A character outside of the basic plane is two units, and half of one is not text.
  const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, "");
  const tail = text.slice(-half).replace(/^[\udc00-\udfff]/, "");
  return `${head}\n[… ${text.length - head.length - tail.length} characters left out …]\n${tail}`;
}
