import type { SessionHead } from "../../session/log/fold.ts";

/** A cache of JSON lengths. Settings and metadata stay the same object until they change, so each is measured once. */
const lengths = new WeakMap<object, number>();

/** A head for a listing: without the values of its settings, which may be large and secret. */
export function forListing(head: SessionHead): SessionHead {
  const { settings } = head.path;
  if (settings === null) return head;
  const { count, seq, before } = settings;
  const path = Object.freeze({ ...head.path, settings: Object.freeze({ count, seq, before }) });
  return Object.freeze({ ...head, path });
}

/** About how many characters the metadata and settings of a head have. The rest of a head is small. */
export function headWeight({ header: { metadata }, path: { settings } }: SessionHead): number {
  return lengthOf(metadata) + (settings === null ? 0 : lengthOf(settings.change ?? {}));
}

function lengthOf(value: object): number {
  for (const _key in value) {
    const known = lengths.get(value) ?? JSON.stringify(value).length;
    lengths.set(value, known);
    return known;
  }
  return 0;
}
