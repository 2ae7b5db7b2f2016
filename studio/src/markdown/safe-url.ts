const LINK = /^(?:https?:\/\/|mailto:)[^\s]/i;
const RASTER_TYPES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
]);

/** True for raster formats; an SVG can contain scripts. */
export function isRaster(mediaType: string): boolean {
  return RASTER_TYPES.has(mediaType.toLowerCase());
}

/** The URL of an allowed link; null for any other, such as `javascript:`. */
export function safeLink(url: string): string | null {
  return LINK.test(url) ? url : null;
}

/** The URL of an embedded picture, which needs no request; null for any other. */
export function safeImage(url: string): string | null {
  const [, mediaType] = /^data:([a-z/+.-]+);base64,[a-z0-9+/=]*$/i.exec(url) ?? [];
  if (mediaType !== undefined) return isRaster(mediaType) ? url : null;
  return url.startsWith("blob:") ? url : null;
}
