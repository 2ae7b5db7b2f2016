const LINK = /^(?:https?:\/\/|mailto:)[^\s]/i;
const RASTER_TYPES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
]);

/** Whether a picture of that type is only pixels; an SVG can hold anything. */
export function isRaster(mediaType: string): boolean {
  return RASTER_TYPES.has(mediaType.toLowerCase());
}

/** The address of a link that may be followed; null for any other, such as `javascript:`. */
export function safeLink(url: string): string | null {
  return LINK.test(url) ? url : null;
}

/** The address of a picture that is shown without asking anyone for it; null for any other. */
export function safeImage(url: string): string | null {
  const [, mediaType] = /^data:([a-z/+.-]+);base64,[a-z0-9+/=]*$/i.exec(url) ?? [];
  if (mediaType !== undefined) return isRaster(mediaType) ? url : null;
  return url.startsWith("blob:") ? url : null;
}
