use till::{Line, change, total_cents};

#[test]
fn every_piece_is_paid() {
    let lines = [
        Line { name: "bread", price_cents: 320, quantity: 1 },
        Line { name: "apples", price_cents: 45, quantity: 6 },
    ];
    assert_eq!(total_cents(&lines), 590);
}

#[test]
fn change_is_given_to_the_last_cent() {
    assert_eq!(change(0), []);
    assert_eq!(change(200), [200]);
    assert_eq!(change(188), [100, 50, 20, 10, 5, 2, 1]);
}
