import { expect, test } from "vitest";
import { aLoadedModel, SMOLLM } from "@/test/fixtures";
import { loadRequest, noteKeeping, noteRequest, optionsOfLoad } from "./load-requests";

test("a model is loaded again with what it was loaded with, but not by force", () => {
  noteRequest("tiny", loadRequest("tiny", { max_seq_length: 512, force: true, ttl_s: 60 }));
  expect(loadRequest("tiny", optionsOfLoad("tiny"))).toEqual(
    loadRequest("tiny", { max_seq_length: 512, ttl_s: 60 }),
  );
});

test("of a model that somebody else loaded, what shows of its options is kept", () => {
  const loaded = aLoadedModel({ context_length: 2048, cache_type_kv: "q8_0" });
  expect(optionsOfLoad(SMOLLM, loaded)).toEqual({ max_seq_length: 2048, cache_type_kv: "q8_0" });
  expect(loadRequest(SMOLLM, optionsOfLoad(SMOLLM, aLoadedModel()))).toEqual(loadRequest(SMOLLM));
});

test("how it is kept since a person changed that goes along with the rest", () => {
  noteRequest("tiny", loadRequest("tiny", { max_seq_length: 512, ttl_s: 60 }));
  noteKeeping("tiny", { pin: true });
  noteKeeping("tiny", { ttl_s: 300 });
  expect(optionsOfLoad("tiny")).toMatchObject({ max_seq_length: 512, ttl_s: 300, pin: true });
});
