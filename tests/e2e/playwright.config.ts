import { fileURLToPath } from "node:url";
import { defineConfig } from "@playwright/test";

const port = process.env.ELOQUIO_E2E_PORT ?? "8652";
const said = fileURLToPath(new URL("../fixtures/digits_whisper/spoken/42.wav", import.meta.url));
const baseURL = `http://127.0.0.1:${port}`;

export default defineConfig({
  testDir: ".",
  outputDir: "../../test-results",
  // One server with one engine: the tests that change what is loaded must not meet.
  workers: 1,
  timeout: 240_000,
  expect: { timeout: 20_000 },
  forbidOnly: Boolean(process.env.CI),
  reporter: "list",
  use: {
    baseURL,
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
    permissions: ["clipboard-read", "clipboard-write"],
    screenshot: "only-on-failure",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        // A microphone that hears a person say "four two", over and over.
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        `--use-file-for-fake-audio-capture=${said}`,
      ],
    },
  },
  webServer: {
    command: `${process.env.ELOQUIO_PYTHON ?? "../../.venv/bin/python"} serve.py ${port}`,
    url: `${baseURL}/health`,
    // The first time the models for the worker are made.
    timeout: 300_000,
    stdout: "pipe",
    gracefulShutdown: { signal: "SIGTERM", timeout: 10_000 },
  },
});
