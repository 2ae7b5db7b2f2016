import { digest } from "../foreign-id.ts";

/** Whether opencode itself makes ids of this form for its sessions. */
export function isOpencodeSessionId(id: string): boolean {
  return /^ses_[0-9A-Za-z]{26}$/.test(id);
}

/** The id of a session for opencode, always the same for the same text. */
export function opencodeSessionId(text: string): string {
  return `ses_${digest(text).slice(0, 26)}`;
}

/**
 * Makes the ids of messages and parts. opencode sorts by them: they begin with the time, and each is greater than the one
 * before it.
 */
export class OpencodeIds {
  #last = 0n;

  /** An id that opencode itself has given. */
  seen(id: string): void {
    const time = /^(?:msg|prt)_([0-9a-f]{12})/.exec(id)?.[1];
    if (time !== undefined) this.#last = max(this.#last, BigInt(`0x${time}`));
  }

  next(kind: "msg" | "prt", timeMs: number, name: string): string {
    // opencode keeps the low 48 bits of the time in milliseconds, with twelve bits to count those within one.
    const time = BigInt.asUintN(48, BigInt(timeMs) << 12n);
    this.#last = max(this.#last + 1n, time);
    return `${kind}_${this.#last.toString(16).padStart(12, "0")}${digest(name).slice(0, 14)}`;
  }
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
