import type { CallerRights } from "../../caller-rights.ts";
import { HttpError } from "../http-error.ts";
import type { Caller } from "../server-services.ts";

/** An authenticated caller, and whether the credentials are still valid. */
export interface Admission {
  readonly caller: Caller;
  /** Whether the caller's credentials are valid now. Open streams end when they are not. */
  holds(): boolean;
}

const DESCRIPTIONS: Readonly<Record<keyof CallerRights, string>> = {
  run: "start, steer or cancel runs",
  approve: "answer the questions of runs",
  files: "use the files in checkpoints",
};

/** @throws {HttpError} `FORBIDDEN` for a caller without the right. */
export function checkRight({ may }: Caller, right: keyof CallerRights): void {
  if (!may[right])
    throw new HttpError("FORBIDDEN", `You may not ${DESCRIPTIONS[right]}: you do not have the right ${right}.`);
}
