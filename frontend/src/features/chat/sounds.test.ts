import { expect, test } from "vitest";
import { apart, soundOf } from "./sounds";

const file = (name: string, type: string) => new File(["x"], name, { type });

test.each([
  ["a recording of the browser", file("recording", "audio/webm;codecs=opus"), "audio/webm"],
  ["a file with its type", file("a.mp3", "audio/mpeg"), "audio/mpeg"],
  ["a file whose type nobody knows", file("A.FLAC", ""), "audio/flac"],
  ["sound in a container for pictures", file("a.webm", "video/webm"), "audio/webm"],
])("%s is a sound", (_, given, type) => {
  expect(soundOf(given)?.type).toBe(type);
});

test.each([file("a.png", "image/png"), file("a.mp4", "video/mp4"), file("notes.txt", "")])(
  "$name is none",
  (given) => {
    expect(soundOf(given)).toBeNull();
  },
);

test("pictures and sounds that were attached are told apart, in their order", () => {
  const [one, two] = ["data:image/png;base64,AA==", "data:image/png;base64,AB=="];
  const [sound, other] = ["data:audio/webm;base64,AA==", "data:audio/mpeg;base64,AB=="];
  expect(apart([one, sound, two, other])).toEqual({ images: [one, two], sounds: [sound, other] });
});
