import { expect, test } from "vitest";
import { isRaster, safeImage, safeLink } from "./safe-url.ts";

test.for(["https://example.org/a?b=c", "http://127.0.0.1:80", "mailto:someone@example.org", "HTTPS://EXAMPLE.ORG"])(
  "allows the link %s",
  (url) => {
    expect(safeLink(url)).toBe(url);
  },
);

test.for([
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  " javascript:alert(1)",
  "java\nscript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "vbscript:x",
  "//example.org",
  "/relative",
  "#/sessions",
  "file:///etc/passwd",
  "",
])("does not let %j be followed", (url) => {
  expect(safeLink(url)).toBeNull();
});

test("allows embedded pictures, and only raster formats", () => {
  expect(safeImage("data:image/png;base64,aGk=")).not.toBeNull();
  expect(safeImage("data:image/svg+xml;base64,aGk=")).toBeNull();
  expect(safeImage("data:image/svg+xml,<svg onload=alert(1)>")).toBeNull();
  expect(safeImage("https://example.org/tracker.png")).toBeNull();
  expect(isRaster("IMAGE/PNG")).toBe(true);
  expect(isRaster("text/html")).toBe(false);
});
