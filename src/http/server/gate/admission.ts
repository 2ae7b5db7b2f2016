import type { CallerRights } from "../../caller-rights.ts";
import { HttpError } from "../http-error.ts";
import type { Caller } from "../server-services.ts";

/** A caller who was let in, and for how long that holds. */
export interface Admission {
  readonly caller: Caller;
  /** Whether what let them in would let them in now. Open streams end when it would not. */
  holds(): boolean;
}

const DOES: Readonly<Record<keyof CallerRights, string>> = {
  run: "start, steer or stop what makes a model or a tool work",
  approve: "answer the questions of runs",
  files: "reach the files that checkpoints hold",
};

/** @throws {HttpError} `FORBIDDEN` for a caller without the right. */
export function checkRight({ may }: Caller, right: keyof CallerRights): void {
  if (!may[right]) throw new HttpError("FORBIDDEN", `You may not ${DOES[right]}: the right ${right} is not yours.`);
}
