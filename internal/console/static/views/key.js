import { html, useState } from '../lib/html.js'
import { setKey, key, forgetKey } from '../lib/key.js'
import { visible } from '../lib/visible.js'

// KeyPrompt asks for an API key when the node wants one.
export function KeyPrompt({ problem }) {
  const [text, setText] = useState('')
  const enter = (event) => { event.preventDefault(); setKey(text.trim()) }
  return html`
    <section class="prompt">
      <h1>This node asks for an API key</h1>
      ${key() && html`<p role="alert" class="failure"><strong>${visible(problem.title)}</strong> <span>${visible(problem.detail)}</span></p>`}
      <form onSubmit=${enter}>
        <label class="field"><span>API key</span>
          <input type="password" name="key" value=${text} onInput=${(e) => setText(e.target.value)} autocomplete="off" spellcheck=${false} placeholder="ek_…" autofocus required /></label>
        <div class="buttons">
          ${key() && html`<button type="button" onClick=${forgetKey}>Without a key</button>`}
          <button class="primary">Go on</button>
        </div>
      </form>
      <p class="dim">It stays in this tab until the tab is closed or you forget it, and is sent to this node alone.
        A key with the scope <code>analyst</code> reads everything; compacting and erasing need <code>gateway</code> or <code>admin</code>.
        An operator makes one with <code>engined keys create</code>.</p>
    </section>`
}
