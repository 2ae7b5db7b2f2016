import { crc32, deflateSync } from "node:zlib";
import { randomBytes } from "node:crypto";
import type { Page } from "playwright-core";

const WIDTH = 64;

/** A PNG picture of 64 × 64 random pixels, about 12 KB. */
export function samplePicture(): Buffer {
  const header = Buffer.from([0, 0, 0, WIDTH, 0, 0, 0, WIDTH, 8, 2, 0, 0, 0]);
  const rows = Buffer.concat(
    Array.from({ length: WIDTH }, () => Buffer.concat([Buffer.of(0), randomBytes(3 * WIDTH)])),
  );
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** The width of a picture as the browser has decoded it; 0 as long as it has not. */
export function pictureWidth(page: Page, alt: string): Promise<number> {
  return page.evaluate(`document.querySelector('img[alt="${alt}"]')?.naturalWidth ?? 0`);
}
