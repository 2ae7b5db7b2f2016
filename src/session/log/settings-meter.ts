import type { EntryOf } from "./entry.ts";
import { SessionCapacityError } from "../errors.ts";
import { type SettingsNode, settingsFrom } from "./settings.ts";

/** How many bytes of old settings one append may read; an append with many small branches could ask for more. */
const READ_BYTES_MAX = 32 * 1024 * 1024;
const encoder = new TextEncoder();

/** Enforces the maximum size of a path's settings as JSON during an append. */
export class SettingsMeter {
  readonly #bytesMax: number;
  readonly #chainOf: (last: SettingsNode) => readonly SettingsNode[];
  /** The size of each part of the settings after the last checked entry. */
  #sizes = new Map<string, number>();
  #last: SettingsNode | null = null;
  #bytes = 0;
  #readBytes = 0;

  constructor(bytesMax: number, chainOf: (last: SettingsNode) => readonly SettingsNode[]) {
    this.#bytesMax = bytesMax;
    this.#chainOf = chainOf;
  }

  /** @throws {SessionCapacityError} if the settings after an entry, given with its node, are too large. */
  check(parent: SettingsNode | null, entry: EntryOf<"variables">, node: SettingsNode): void {
    if (parent !== this.#last) this.#read(parent);
    for (const key of entry.unset) this.#set(`v${key}`, 0);
    for (const [key, value] of Object.entries(entry.set)) this.#set(`v${key}`, sizeOf({ [key]: value }));
    for (const name of ["systemPrompt", "activeTools", "activeSkills"] as const)
      if (entry[name] !== undefined) this.#set(name, sizeOf(entry[name]));
    this.#last = node;
    if (this.#bytes > this.#bytesMax) throw new SessionCapacityError("bytes of variables in a session", this.#bytesMax);
  }

  #read(last: SettingsNode | null): void {
    this.#sizes = new Map();
    this.#bytes = 0;
    const { variables, setups: _setups, ...rest } = settingsFrom(last === null ? [] : this.#chainOf(last));
    for (const [key, value] of Object.entries(variables)) this.#set(`v${key}`, sizeOf({ [key]: value }));
    for (const [name, value] of Object.entries(rest)) this.#set(name, sizeOf(value));
    this.#readBytes += this.#bytes;
    if (this.#readBytes > READ_BYTES_MAX)
      throw new SessionCapacityError("bytes of variables that one append may build on", READ_BYTES_MAX);
  }

  #set(name: string, bytes: number): void {
    this.#bytes += bytes - (this.#sizes.get(name) ?? 0);
    this.#sizes.set(name, bytes);
  }
}

/** @throws {SessionCapacityError} if settings exceed this number of bytes as JSON. */
export function checkSettingsBytes(settings: object, bytesMax: number): void {
  if (sizeOf(settings) > bytesMax) throw new SessionCapacityError("bytes of variables in a session", bytesMax);
}

function sizeOf(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length;
}
