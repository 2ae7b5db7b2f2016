import { digest } from "../foreign-id.ts";

/** Whether a text has the form of opencode's session ids. */
export function isOpencodeSessionId(id: string): boolean {
  return /^ses_[0-9A-Za-z]{26}$/.test(id);
}

/** A session id for opencode, derived from a text. */
export function opencodeSessionId(text: string): string {
  return `ses_${digest(text).slice(0, 26)}`;
}

/**
 * Makes the ids of messages and parts. opencode sorts by id, so each id begins with the time and is greater than the one
 * before.
 */
export class OpencodeIds {
  #last = 0n;

  /** Records an id that opencode made; later ids will be greater. */
  seen(id: string): void {
    const time = /^(?:msg|prt)_([0-9a-f]{12})/.exec(id)?.[1];
    if (time !== undefined) this.#last = max(this.#last, BigInt(`0x${time}`));
  }

  next(kind: "msg" | "prt", timeMs: number, name: string): string {
    // opencode's format: the low 48 bits of milliseconds shifted by 12; the 12 bits count ids within a millisecond.
    const time = BigInt.asUintN(48, BigInt(timeMs) << 12n);
    this.#last = max(this.#last + 1n, time);
    return `${kind}_${this.#last.toString(16).padStart(12, "0")}${digest(name).slice(0, 14)}`;
  }
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
