import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";

browserTest(
  "the studio opens under a strict policy, which stops scripts that are not its own",
  async ({ open, server }) => {
    const policy = (await fetch(server.url)).headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("object-src 'none'");
    expect(policy).not.toMatch(/script-src|unsafe-eval/);
    const page = await open({ mayFail: /Content Security Policy|404/ });
    await page.getByRole("link", { name: "Skein studio" }).waitFor();
    const ran = await page.evaluate(`(async () => {
    const script = document.createElement("script");
    script.textContent = "window.injected = true";
    const image = document.createElement("div");
    image.innerHTML = "<img src=x onerror='window.injected = true'>";
    document.body.append(script, image);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return "injected" in window;
  })()`);
    expect(ran).toBe(false);
  },
);
