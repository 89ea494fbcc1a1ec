package console

import (
	"testing"
)

// TestCompactAndUndoFromThePage does both, and asks the API whether they happened.
func TestCompactAndUndoFromThePage(t *testing.T) {
	t.Parallel()
	const key = "own:compacted"
	if err := theNode.engined("import", "--session", key, "../transcripts/testdata/pi/large-session-start.jsonl"); err != nil {
		t.Fatal(err)
	}
	epoch := func() float64 { return theNode.call(t, sessionPath(key), "")["epoch"].(float64) }
	p := newTab(t, theNode.base)
	p.open(hashOf(key, "compaction", ""))
	p.click("input[type=checkbox]", "")
	p.see("at most", "first message kept")

	p.click("button", "Compact…")
	p.see("Compact this session?", "epoch 2 begins, even under the threshold")
	p.click("dialog button", "Cancel")
	p.until("!document.querySelector('dialog')", "for the dialog to close")
	if epoch() != 1 {
		t.Fatal("a cancelled compaction was done")
	}
	p.click("button", "Compact…")
	p.click("dialog button", "Compact")
	p.see("Compacted.", "epoch 2")
	if epoch() != 2 {
		t.Error("the page says compacted, the API does not")
	}
	p.until("document.querySelector('.cause-compaction')", "for the history")

	p.click("a", "before / after")
	p.see("came", "left", "now in summary", "stands for")
	p.click(".tabs a", "Summaries")
	p.click(".branch .opener", "live")
	p.click(".branchbody > button", "The messages it covers")
	p.until("document.querySelectorAll('.coveredrow').length > 0", "for what it covers")
	seq := eval[string](p, "document.querySelector('.coveredrow .seq').innerText")
	p.click(".coveredrow .seq", seq)
	p.until("document.querySelector('.event.marked')?.dataset.seq === "+js(seq), "for the message in the log")

	p.click(".tabs a", "Compaction")
	p.click("button", "Compact again…")
	p.see("epochs 3 and 4")
	p.click("dialog button", "Undo and compact")
	p.see("Compacted.", "epoch 4")

	p.click("button", "Undo the last compaction…")
	p.see("as epoch 5")
	p.click("dialog button", "Undo")
	p.see("Undone.", "Epoch 5 has the summaries from before epoch 4.")
	if epoch() != 5 {
		t.Error("the page says undone, the API does not")
	}
	p.click(".tabs a", "Summaries")
	p.see("No longer in use")
	p.click(".tabs a", "Log")
	p.fill("select", "epochs")
	p.until("document.querySelectorAll('.event').length === 4", "for the four steps")
	p.sound()
}

// TestARefusedActSaysWhy: someone else was faster.
func TestARefusedActSaysWhy(t *testing.T) {
	t.Parallel()
	const key = "own:contended"
	if err := theNode.engined("import", "--session", key, "../transcripts/testdata/pi/large-session-start.jsonl"); err != nil {
		t.Fatal(err)
	}
	p := newTab(t, theNode.base)
	p.expect("409")
	p.open(hashOf(key, "compaction", ""))
	p.click("button", "Compact…")
	p.see("epoch 2 begins")
	theNode.call(t, sessionPath(key)+"/compact", `{"force":true}`)
	p.click("dialog button", "Compact")
	p.see("epoch") // in the API's words
	p.until("document.querySelector('dialog .failure')", "for the refusal in the dialog")
	p.click("dialog button", "Cancel")
	p.until("!document.querySelector('dialog')", "for the dialog to close")
}

func TestErasingTakesTheTypedKey(t *testing.T) {
	t.Parallel()
	const key = "own:<b>erased</b>"
	theNode.say(t, key, "gone soon")
	p := newTab(t, theNode.base)
	p.open(hashOf(key, "log", ""))
	p.see("gone soon")
	p.click("button", "Erase…")
	p.see("cannot be brought back. A host that writes")
	button := "document.querySelector('dialog .danger')"
	for _, typed := range []string{"", "own:", "own:erased", key + " "} {
		p.fill("dialog input", typed)
		if !eval[bool](p, button+".disabled") {
			t.Fatalf("erases after %q", typed)
		}
	}
	p.fill("dialog input", key)
	p.until("!"+button+".disabled", "for the button")
	p.click("dialog button", "Erase for good")
	p.until("location.hash === '#/' || location.hash.startsWith('#/sessions')", "to be at the list")
	p.until("document.querySelector('.sessions') && !document.body.innerText.includes("+js(key)+")", "for it to be gone")
	if status := theNode.status(t, sessionPath(key)); status != 404 {
		t.Errorf("the API still has it: %d", status)
	}
}
