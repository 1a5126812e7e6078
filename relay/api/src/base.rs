//! The page's base: how far up the relay's own folder is from a view.
//!
//! Behind a proxy the relay may be in a folder, `https://school.example/potluck/`, which neither it nor the build knows. So the page
//! has relative addresses only, and its base element leads from each view to that folder.

/// The base element as the build writes it, for views that are in the relay's folder itself.
const HERE: &str = "<base href=\"./\" />";
/// No path of ours is deeper. A longer one is a mistake, for which the way up need not be right.
const DEEPEST: usize = 8;

/// From a path of the relay to its folder: `../` from `/r/ID`.
#[must_use]
pub fn way_up(path: &str) -> String {
    match path.matches('/').count().saturating_sub(1).min(DEEPEST) {
        0 => "./".to_owned(),
        depth => "../".repeat(depth),
    }
}

/// The page at the address of a room. A page without that base element stays as it is.
#[must_use]
pub fn in_room(html: &str) -> String {
    html.replacen(HERE, &format!("<base href=\"{}\" />", way_up("/r/ID")), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_leads_from_every_view_to_the_relays_folder() {
        for (path, up) in [("/", "./"), ("/bench", "./"), ("/r/k3v9abcd", "../"), ("/r/a/b", "../../"), ("", "./")] {
            assert_eq!(way_up(path), up, "{path}");
        }
        assert_eq!(way_up(&"/".repeat(1000)).len(), 3 * DEEPEST, "an answer is not longer than its request by much");
    }

    #[test]
    fn only_the_base_element_changes() {
        assert_eq!(in_room("<base href=\"./\" /><a href=\"./\">"), "<base href=\"../\" /><a href=\"./\">");
        assert_eq!(in_room("<p>"), "<p>");
    }
}
