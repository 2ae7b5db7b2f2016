const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const POOL_BYTES = 4096;
const pool = new Uint8Array(POOL_BYTES);
let poolUsed = POOL_BYTES;
let lastMs = 0;
let counter = 0;

/**
 * Makes a UUID version 7 (RFC 9562). Ids sort by creation time; within one process also those of the same millisecond.
 */
export function uuidv7(): string {
  if (poolUsed + 10 > POOL_BYTES) {
    crypto.getRandomValues(pool);
    poolUsed = 0;
  }
  const at = poolUsed;
  poolUsed += 10;
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    counter = (byte(at) << 3) | (byte(at + 1) >> 5);
  } else if (++counter > 0xfff) {
    // The 12 bits of the counter overflow: use the next millisecond, so that ids keep rising.
    lastMs += 1;
    counter = 0;
  }
  const high = Math.floor(lastMs / 0x100000000);
  const low = lastMs >>> 0;
  return (
    `${hex(high >>> 8)}${hex(high)}${hex(low >>> 24)}${hex(low >>> 16)}-${hex(low >>> 8)}${hex(low)}-` +
    `${hex(0x70 | (counter >>> 8))}${hex(counter)}-${hex(0x80 | (byte(at + 2) & 0x3f))}${hex(byte(at + 3))}-` +
    `${hex(byte(at + 4))}${hex(byte(at + 5))}${hex(byte(at + 6))}${hex(byte(at + 7))}${hex(byte(at + 8))}${hex(byte(at + 9))}`
  );
}

function byte(index: number): number {
  return pool[index] as number;
}

function hex(value: number): string {
  return HEX[value & 0xff] as string;
}
